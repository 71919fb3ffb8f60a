//go:build unix

package postgresserver

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// account is whom the server runs as, where that is not ourselves.
type account struct{ uid, gid uint32 }

// unprivileged returns nil if we are no superuser ourselves.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("%w: it does not run as root, and there is nobody else: %w", ErrNoServer, err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &account{uint32(uid), uint32(gid)}, nil
}

// own gives a directory to the account.
func (a *account) own(dir string) error {
	if a == nil {
		return nil
	}
	return os.Chown(dir, int(a.uid), int(a.gid))
}

// attributes are those of a process that runs as the account and dies with us.
func (a *account) attributes() *syscall.SysProcAttr {
	attr := dieWithParent()
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}

// interrupt asks the server for an immediate shutdown: it ends its children, and itself without a checkpoint.
const interrupt = syscall.SIGQUIT
