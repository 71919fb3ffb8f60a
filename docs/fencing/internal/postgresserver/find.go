package postgresserver

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// ErrNoServer says that PostgreSQL cannot be run on this machine.
var ErrNoServer = errors.New("postgresserver: no PostgreSQL server to run")

// installed is where Debian's packages put the binaries, one directory per major version, none of them in PATH: what
// is in PATH there are wrappers around clients.
const installed = "/usr/lib/postgresql/*/bin"

// findBin returns the directory that has both initdb and postgres.
func findBin() (string, error) {
	if dir := os.Getenv("REDQUORUM_POSTGRES_BIN"); dir != "" {
		if !hasServer(dir) {
			return "", fmt.Errorf("%w: no initdb and postgres in REDQUORUM_POSTGRES_BIN=%s", ErrNoServer, dir)
		}
		return dir, nil
	}
	if initdb, err := exec.LookPath("initdb"); err == nil && hasServer(filepath.Dir(initdb)) {
		return filepath.Dir(initdb), nil
	}
	dirs, err := filepath.Glob(installed)
	if err != nil {
		return "", err
	}
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return !hasServer(dir) })
	if len(dirs) == 0 {
		return "", fmt.Errorf("%w: initdb and postgres are neither in PATH nor in %s", ErrNoServer, installed)
	}
	return slices.MaxFunc(dirs, func(a, b string) int { return cmp.Compare(version(a), version(b)) }), nil
}

func hasServer(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// version is the major version in the path of a directory of binaries; as a number, since 9.6 is older than 15.
func version(bin string) float64 {
	v, _ := strconv.ParseFloat(filepath.Base(filepath.Dir(bin)), 64) // what is no number comes last
	return v
}
