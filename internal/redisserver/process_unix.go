//go:build unix && !linux

package redisserver

import "syscall"

// dieWithParent has no equivalent here: servers outlive a killed test binary.
func dieWithParent() *syscall.SysProcAttr { return nil }

func (p *process) pause() error  { return p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
