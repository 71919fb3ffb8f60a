package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/redisserver"
)

// notOnce is a script that must not run twice at once. It writes into a file that all of it share what it does, who it is, and
// how long the machine is up, a clock that nobody sets. It does not end when it is told to.
const notOnce = `trap "" TERM
echo $$ > $0.$1
note() { read -r up rest < /proc/uptime; echo "$1 $up" >> $0; }
note $1
while [ ! -e $0.$1.enough ]; do note $1; sleep 0.02; done`

// A majority of real servers stops in the middle of it, while another process waits to run it, too. The first is ended with its
// lease, however it resists, when the grace is over; and the second does not begin before there is a quorum again.
func TestRunAroundAScriptThatMustNotRunTwiceBearsTheLossOfAMajority(t *testing.T) {
	t.Parallel()
	redisserver.Require(t)
	const (
		ttl   = 3 * time.Second
		grace = 300 * time.Millisecond
		slack = 700 * time.Millisecond // of a busy machine, whose timers are late
	)
	for title, c := range map[string]struct {
		stop, back func(*redisserver.Server) error
	}{
		"they hang":                 {(*redisserver.Server).Pause, (*redisserver.Server).Resume},
		"they die and forget it":    {func(s *redisserver.Server) error { s.Kill(); return nil }, (*redisserver.Server).Restart},
		"they hang, die and forget": {(*redisserver.Server).Pause, (*redisserver.Server).Restart},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			servers := redisserver.StartN(t, 3)
			most := func(do func(*redisserver.Server) error) {
				t.Helper()
				for _, s := range servers[:2] {
					if err := do(s); err != nil {
						t.Fatal(err)
					}
				}
			}
			file := filepath.Join(t.TempDir(), "notes")
			args := func(who string) []string {
				return []string{
					"--nodes", strings.Join(redisserver.URLs(servers), ","), "--ttl", ttl.String(), "--node-timeout", "400ms",
					"--grace", grace.String(), "stock", "--", "sh", "-c", notOnce, file, who,
				}
			}
			first, _, lost := startSeen(t, args("first")...)
			pid := written(t, file+".first")
			second, _, waits := startSeen(t, args("second")...)
			waits.shows(t, "it is held by")

			most(c.stop)
			stopped := uptime(t)
			hasEnded(t, pid)
			_ = first.Wait()
			if code := first.ProcessState.ExitCode(); code != 121 || !strings.Contains(lost.String(), "was lost") {
				t.Errorf("exit status %d:\n%s", code, lost)
			}
			waits.shows(t, "no quorum of nodes")
			note(t, file, "back", uptime(t))
			most(c.back)

			written(t, file+".second")
			if err := os.WriteFile(file+".second.enough", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := second.Wait(); err != nil {
				t.Errorf("%v:\n%s", err, waits)
			}
			var last time.Duration // note of the first
			order := ""
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				who, up, _ := strings.Cut(strings.TrimSpace(line), " ")
				if !strings.HasSuffix(order, who+" ") {
					order += who + " "
				}
				if who == "first" {
					last = seconds(t, up)
				}
			}
			if order != "first back second " {
				t.Errorf("they were at work in the order %s", order)
			}
			// The last renewal came before they stopped, and so does the lease's end within a TTL of that.
			if last > stopped+ttl+grace+slack {
				t.Errorf("it went on for %v after the nodes had stopped", last-stopped)
			}
			t.Logf("it went on for %v after the nodes had stopped, with a TTL of %v and a grace of %v", last-stopped, ttl, grace)
		})
	}
}

// uptime is how long the machine is up.
func uptime(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	up, _, _ := strings.Cut(string(text), " ")
	return seconds(t, up)
}

// seconds reads a number of them.
func seconds(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text + "s")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// note adds a note to a file.
func note(t *testing.T, file, who string, up time.Duration) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s %.2f\n", who, up.Seconds()); err != nil {
		t.Fatal(err)
	}
}
