//go:build unix && !linux

package postgresserver

import "syscall"

// dieWithParent has no equivalent here: the server outlives a killed test binary.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
