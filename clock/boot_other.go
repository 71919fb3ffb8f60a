//go:build !linux

package clock

import (
	"errors"
	"fmt"
	"runtime"
)

// Boot is Linux' CLOCK_BOOTTIME. On this system there is none: [NewBoot] fails, and [System] is a
// [Portable].
type Boot struct {
	Clock // never set; it gives the type its methods, so that code naming them compiles here too
}

// NewBoot returns an error that is [errors.ErrUnsupported].
func NewBoot() (*Boot, error) {
	return nil, fmt.Errorf("clock: no CLOCK_BOOTTIME on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
