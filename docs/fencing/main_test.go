package fencing

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/docs/fencing/internal/postgresserver"
)

// postgres is the server of all tests.
var postgres postgresserver.Shared

func TestMain(m *testing.M) { goleak.VerifyTestMain(withServer{m}) }

type withServer struct{ m *testing.M }

func (w withServer) Run() int {
	defer postgres.Close()
	return w.m.Run()
}
