package doctor

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // by default: they wait more than they work
	goleak.VerifyTestMain(m)
}
