//go:build unix

package measure

import (
	"syscall"
	"time"
)

// CPU is the processor time that this process has used, all its threads, in the kernel and outside.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
