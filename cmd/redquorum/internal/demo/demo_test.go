package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/cmd/redquorum/internal/counter"
	"github.com/redquorum/redquorum/cmd/redquorum/internal/stock"
	"github.com/redquorum/redquorum/cmd/redquorum/internal/worker"
)

// TestMain makes the test binary a worker process when it is called like one: an honest one, one that takes no lock,
// or one that dies.
func TestMain(m *testing.M) {
	switch os.Args[len(os.Args)-1] {
	case "honest":
		exit(worker.Run(context.Background(), stdio{}))
	case "cheat":
		exit(cheat())
	case "die":
		exit(errors.New("no will to live"))
	}
	goleak.VerifyTestMain(m)
}

func exit(err error) {
	if err != nil {
		_, _ = io.WriteString(os.Stderr, err.Error())
		os.Exit(1)
	}
	os.Exit(0)
}

type stdio struct{}

func (stdio) Read(p []byte) (int, error)  { return os.Stdin.Read(p) }
func (stdio) Write(p []byte) (int, error) { return os.Stdout.Write(p) }
func (stdio) Close() error                { return os.Stdout.Close() }

// cheat sells without a lock whatever the job says, as two workers at once do: both look, and then both sell.
func cheat() error {
	client := counter.NewClient(stdio{})
	for {
		var items [2]int
		for i := range items {
			var err error
			if items[i], err = client.Look(1, 0); err != nil || items[i] == 0 {
				return err
			}
		}
		for _, item := range items {
			if err := client.Sell(1, 0, item); err != nil {
				return err
			}
		}
	}
}

func run(t *testing.T, cfg Config, kind string) (string, error) {
	t.Helper()
	t.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	cfg.Worker = []string{os.Args[0], kind}
	var out bytes.Buffer
	err := Run(t.Context(), cfg, &out)
	return out.String(), err
}

var small = Config{Stock: 10, Processes: 2, Workers: 2, TTL: 200 * time.Millisecond, Timeout: 20 * time.Second}

func TestHonestWorkersAreExact(t *testing.T) {
	if out, err := run(t, small, "honest"); err != nil || !strings.Contains(out, "VERDICT: with the lock every item") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// If this passed, the demo would prove nothing.
func TestWorkersThatTakeNoLockAreFoundOut(t *testing.T) {
	out, err := run(t, small, "cheat")
	if !errors.Is(err, ErrNotExact) {
		t.Errorf("got %v, want %v:\n%s", err, ErrNotExact, out)
	}
	if strings.Count(out, "OVERSOLD by") != 2 || !strings.Contains(out, "VERDICT: "+ErrNotExact.Error()) {
		t.Errorf("it does not say so:\n%s", out)
	}
}

func TestWorkersThatAllDieEndTheDemo(t *testing.T) {
	out, err := run(t, small, "die")
	if err == nil || errors.Is(err, ErrNotExact) || !strings.Contains(err.Error(), "worker process 2 died: exit status 1 no will to live") {
		t.Errorf("got %v:\n%s", err, out)
	}
}

func TestVerdictTellsWhatWasWrong(t *testing.T) {
	exact := result{Tally: stock.Tally{Initial: 2, Sold: 2, Visits: 3}, took: time.Second, fate: "all 5 up"}
	wrong := exact
	wrong.Sold, wrong.Twice, wrong.Together, wrong.dead = 3, 1, 4, 1
	for _, c := range []struct {
		unlocked, locked result
		want             []string
	}{
		{wrong, exact, []string{"with the lock every item was sold exactly once", "processes that died    1 "}},
		{exact, exact, []string{"nothing was oversold this time"}},
		{wrong, wrong, []string{ErrNotExact.Error(), "3 orders for 2 items", "1 items sold again", "inside at once, 4 times"}},
	} {
		got := verdict(c.unlocked, c.locked, remains{free: 5})
		for _, want := range append(c.want, "all 5 up", "no lock left on 5 nodes", "3, 3/s") {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in:\n%s", want, got)
			}
		}
	}
}

func TestAKeyThatStaysIsNotExact(t *testing.T) {
	if err := (remains{held: 1, free: 4}).exact(); !errors.Is(err, ErrNotExact) {
		t.Errorf("got %v", err)
	}
	if err := (remains{free: 3, silent: 2}).exact(); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestATerminalGetsAPictureThatIsDrawnOver(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, live: true}
	s.draw([]string{"one", "two"})
	out.Reset()
	s.say("an event")
	if got, want := out.String(), "\x1b[2A\r\x1b[Jan event\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	out.Reset()
	s.draw([]string{"three"})
	if got, want := out.String(), "\x1b[?7lthree\n\x1b[?7h"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestThePictureShowsStockHolderAndNodes(t *testing.T) {
	s := &sale{stock: stock.New(4), began: time.Now(), watch: &watch{nodes: make([]health, 3)}}
	s.stock.Look(stock.Visitor{Process: 3, Worker: 2}, 1)
	s.stock.Sell(stock.Visitor{Process: 3, Worker: 2}, 1, 4)
	s.stock.Look(stock.Visitor{Process: 2, Worker: 1}, 2)
	s.watch.saw(1, false)
	picture := strings.Join(s.picture(false), "\n")
	for _, want := range []string{
		strings.Repeat("█", 30) + strings.Repeat("░", 10) + "    3 left", "1 orders", "inside worker 2.1", "● 1   ○ 2   ● 3",
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("no %q in:\n%s", want, picture)
		}
	}
	if got, want := s.line(), "1 orders, 3 of 4 left, inside: worker 2.1, nodes up: 2 of 3 (down: 2)"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !strings.Contains(strings.Join(s.picture(true), ""), "\x1b[31m○\x1b[0m 2") {
		t.Error("a node that is down is not red")
	}
}
