package redisserver

import (
	"errors"
	"syscall"
)

func dieWithParent() *syscall.SysProcAttr { return nil }

func (p *process) pause() error  { return errors.ErrUnsupported }
func (p *process) resume() error { return errors.ErrUnsupported }
