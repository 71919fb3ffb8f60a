package postgresserver

import "syscall"

// dieWithParent is an immediate shutdown rather than a kill: a killed server leaves its children and its shared memory
// to whoever comes next.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
}
