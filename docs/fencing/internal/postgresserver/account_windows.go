package postgresserver

import (
	"fmt"
	"os"
	"syscall"
)

type account struct{}

// unprivileged fails: there is neither a unix socket to rely on nor a signal that ends a server with its children.
func unprivileged() (*account, error) {
	return nil, fmt.Errorf("%w: not written for Windows", ErrNoServer)
}

func (*account) own(string) error { return nil }

func (*account) attributes() *syscall.SysProcAttr { return nil }

var interrupt = os.Kill
