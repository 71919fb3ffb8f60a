package redisserver

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(orphanEnv) != "" {
		launchAndHang()
	}
	goleak.VerifyTestMain(m)
}
