package redisserver

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func threadID() int { return unix.Gettid() }

func threadExists(id int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", id))
	return err == nil
}
