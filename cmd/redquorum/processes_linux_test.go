package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// children waits until a process has n children.
func children(t *testing.T, pid, n int) (pids []int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d children", n), func() bool {
		pids = nil
		threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		for _, thread := range threads {
			list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
			for _, field := range strings.Fields(string(list)) {
				child, err := strconv.Atoi(field)
				if err != nil {
					t.Fatal(err)
				}
				pids = append(pids, child)
			}
		}
		return len(pids) == n
	})
	return pids
}

// gone waits until none of the processes runs. One that only waits for its parent to look is gone.
func gone(t *testing.T, pids []int) {
	t.Helper()
	eventually(t, fmt.Sprintf("processes %v gone", pids), func() bool {
		return !slices.ContainsFunc(pids, func(pid int) bool {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			return err == nil && !bytes.Contains(status, []byte("State:\tZ"))
		})
	})
}

// seeNoPassword looks at what everybody can see of a process and its n children.
func seeNoPassword(t *testing.T, pid, n int, password string) {
	t.Helper()
	for _, p := range append(children(t, pid, n), pid) {
		for _, file := range []string{"cmdline", "environ"} {
			content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p, file))
			if err != nil {
				t.Error(err)
			}
			if bytes.Contains(content, []byte(password)) {
				t.Errorf("process %d: the password is in its %s", p, file)
			}
		}
	}
}
