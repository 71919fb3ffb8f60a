package quorum_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/quorum"
)

// docs/choosing.md computes; here is what it computes with. Its tables are compared with these, and clients live through
// what these promise.

// sharp is a clock without uncertainty, as Linux has it.
type sharp struct{ clock.Clock }

func (sharp) Uncertainty() time.Duration { return 0 }

// promises are what follows from a configuration.
type promises struct {
	quorum.Config
	drift, outlasts, free time.Duration
}

func promised(cfg quorum.Config, uncertainty time.Duration) promises {
	cfg = cfg.WithDefaults()
	drift := clock.Drift(cfg.TTL, cfg.DriftFactor, uncertainty)
	return promises{
		Config:   cfg,
		drift:    drift,
		outlasts: cfg.TTL/2 - drift - 2*cfg.NodeTimeout,
		free:     cfg.TTL + drift + cfg.NodeTimeout,
	}
}

// glance is how often a waiter looks at least.
const glance = 1500 * time.Millisecond

// table is the rows of a table of docs/choosing.md below its heads.
func table(t *testing.T, heads ...string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile("../docs/choosing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n| "+strings.Join(heads, " | ")+" |\n")
	if !found {
		t.Fatalf("docs/choosing.md has no table with the columns %q", heads)
	}
	for line := range strings.Lines(rest) {
		cells, isRow := strings.CutPrefix(strings.TrimSpace(line), "| ")
		if !isRow {
			break
		}
		row := strings.Split(strings.TrimSuffix(cells, " |"), " | ")
		if len(row) != len(heads) {
			t.Fatalf("%q has %d cells, want %d", line, len(row), len(heads))
		}
		if !strings.HasPrefix(row[0], "---") {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("the table with the columns %q is empty", heads)
	}
	return rows
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// wantRow compares a row with what it should be: texts, numbers, and durations cut to milliseconds.
func wantRow(t *testing.T, row []string, want ...any) {
	t.Helper()
	var cells []string
	for _, w := range want {
		if d, ok := w.(time.Duration); ok {
			w = d.Truncate(time.Millisecond)
		}
		cells = append(cells, fmt.Sprint(w))
	}
	if !slices.Equal(row, cells) {
		t.Errorf("docs/choosing.md says\n%s, want\n%s", strings.Join(row, " | "), strings.Join(cells, " | "))
	}
}

func TestDocumentedQuorums(t *testing.T) {
	for _, row := range table(t, "N", "quorum", "may fail") {
		n := number(t, row[0])
		wantRow(t, row, n, quorum.Majority(n), n-quorum.Majority(n))
	}
}

func TestDocumentedZones(t *testing.T) {
	for _, row := range table(t, "nodes in each zone", "N", "quorum", "left without the largest", "still a quorum",
		"and how many more may fail") {
		n, largest := 0, 0
		for zone := range strings.SplitSeq(row[0], " + ") {
			n, largest = n+number(t, zone), max(largest, number(t, zone))
		}
		need, left := quorum.Majority(n), n-largest
		still, more := "no", any("–")
		if left >= need {
			still, more = "yes", left-need
		}
		wantRow(t, row, row[0], n, need, left, still, more)
	}
}

func TestDocumentedTTLs(t *testing.T) {
	for _, row := range table(t, "TTL", "NodeTimeout", "drift", "believed for", "renewed every", "outlasts an outage of",
		"free after its holder died") {
		p := promised(quorum.Config{TTL: duration(t, row[0])}, 0)
		valid(t, p.Config)
		start := clock.System().Now()
		wantRow(t, row, p.TTL, p.NodeTimeout, p.drift, clock.Validity(start, p.TTL, p.drift).Sub(start)+time.Microsecond, p.TTL/3,
			p.outlasts+time.Microsecond, p.free)
	}
}

func TestDocumentedDeployments(t *testing.T) {
	for _, row := range table(t, "deployment", "N", "TTL", "NodeTimeout", "may fail", "outlasts an outage of",
		"free after its holder died") {
		n := number(t, row[1])
		p := promised(quorum.Config{TTL: duration(t, row[2]), NodeTimeout: duration(t, row[3])}, 0)
		valid(t, p.Config)
		wantRow(t, row, row[0], n, p.TTL, p.NodeTimeout, n-quorum.Majority(n), p.outlasts+time.Microsecond, p.free)
	}
}

// valid checks that a documented configuration is one.
func valid(t *testing.T, cfg quorum.Config) {
	t.Helper()
	cfg.Clock = sharp{clock.System()}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

func TestDocumentedShortestTTLs(t *testing.T) {
	for _, row := range table(t, "NodeTimeout", "the shortest TTL that is accepted") {
		cfg := quorum.Config{NodeTimeout: duration(t, row[0]), TTL: duration(t, row[1]), Clock: sharp{clock.System()}}
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
		if cfg.TTL -= time.Millisecond; cfg.Validate() == nil {
			t.Errorf("NodeTimeout %v: a TTL of %v is accepted, too", cfg.NodeTimeout, cfg.TTL)
		}
	}
}

func TestDocumentedDefaults(t *testing.T) {
	cfg := quorum.Config{}.WithDefaults()
	want := map[string]string{
		"`TTL`": fmt.Sprintf("%.0f s", cfg.TTL.Seconds()), "`DriftFactor`": fmt.Sprint(cfg.DriftFactor), "`GuardTime`": "the TTL",
		"`MaxHold`": "none", "`NodeTimeout`": "TTL/20, from 20 to 500 ms",
	}
	if cfg.GuardTime != 0 || cfg.MaxHold != 0 {
		t.Errorf("%+v", cfg)
	}
	for ttl, timeout := range map[time.Duration]time.Duration{
		time.Millisecond: 20 * time.Millisecond, 4 * time.Second: 200 * time.Millisecond, time.Hour: 500 * time.Millisecond,
	} {
		if got := (quorum.Config{TTL: ttl}).WithDefaults().NodeTimeout; got != timeout {
			t.Errorf("TTL %v: NodeTimeout %v, want %v", ttl, got, timeout)
		}
	}
	for _, row := range table(t, "field", "default", "buys", "costs") {
		if want[row[0]] != "" && row[1] != want[row[0]] {
			t.Errorf("docs/choosing.md says that %s is %s, want %s", row[0], row[1], want[row[0]])
		}
		delete(want, row[0])
	}
	if len(want) > 0 {
		t.Errorf("docs/choosing.md does not name %v", want)
	}
}

// A client at the end of links of different lengths.
func TestDocumentedRoundTrips(t *testing.T) {
	for _, row := range table(t, "round trips to the nodes", "N", "taken after") {
		trips := strings.Split(row[0], ", ")
		if number(t, row[1]) != len(trips) {
			t.Errorf("%s are not %s", row[0], row[1])
		}
		inBubble(t, len(trips), func(t *testing.T, cl *cluster) {
			for i, trip := range trips {
				cl.nodes[i].Delay(duration(t, trip) / 2)
			}
			c := cl.warmClient(quorum.Config{})
			start := time.Now()
			l := mustAcquire(t, c, t.Context(), "stock")
			if took := time.Since(start); took != duration(t, row[2]) {
				t.Errorf("with round trips of %s a lock is taken after %v, docs/choosing.md says %s", row[0], took, row[2])
			}
			mustRelease(t, l)
		})
	}
}

// documented are the TTLs of the tables.
func documented(t *testing.T) (configs []quorum.Config) {
	t.Helper()
	for _, row := range table(t, "deployment", "N", "TTL", "NodeTimeout", "may fail", "outlasts an outage of",
		"free after its holder died") {
		configs = append(configs, quorum.Config{TTL: duration(t, row[2]), NodeTimeout: duration(t, row[3])})
	}
	return configs
}

// Whenever between two renewals the holder dies, its lock is free when the document says, at last, and no sooner than the
// holder would have believed in it.
func TestLockOfADeadHolderIsFreeWhenTheDocumentSays(t *testing.T) {
	for _, cfg := range documented(t) {
		var longest time.Duration
		for phase := range 6 {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				for _, n := range cl.nodes {
					n.Delay(cfg.NodeTimeout / 10)
				}
				p := promised(cfg, cl.clock.Uncertainty())
				cable := &faultnet.Cable{}
				l := mustAcquire(t, cl.clientOn(cable, cfg), t.Context(), "stock")
				waiting := acquiring(cl.client(cfg), t.Context(), "stock")
				time.Sleep(p.TTL + time.Duration(phase)*p.TTL/17)
				for _, n := range cl.nodes {
					cable.Cut(n)
				}
				died, left := time.Now(), l.Remaining()
				r := <-waiting
				took := time.Since(died)
				if r.err != nil || took < left || took > p.free+glance {
					t.Errorf("TTL %v: taken %v after the death (%v), when the holder believed in it for %v; want no later than %v",
						p.TTL, took, r.err, left, p.free+glance)
				}
				longest = max(longest, took)
				<-l.Done()
				mustRelease(t, r.lease)
			})
		}
		if longest < cfg.TTL*9/10 {
			t.Errorf("TTL %v: free after %v at last; the document promises less than it could", cfg.TTL, longest)
		}
	}
}

// Whenever between two renewals the way to all nodes is cut off for that long, the lease is there afterwards.
func TestLeaseOutlastsTheOutageThatTheDocumentNames(t *testing.T) {
	for _, cfg := range documented(t) {
		for phase := range 8 {
			for _, hangs := range []bool{false, true} {
				inBubble(t, 3, func(t *testing.T, cl *cluster) {
					p := promised(cfg, cl.clock.Uncertainty())
					l := mustAcquire(t, cl.client(cfg), t.Context(), "stock")
					time.Sleep(p.TTL + time.Duration(phase)*p.TTL/21)
					for _, n := range cl.nodes {
						if hangs {
							n.Hold()
						} else {
							n.Kill()
						}
					}
					time.Sleep(p.outlasts)
					for _, n := range cl.nodes {
						if hangs {
							n.Resume()
						} else {
							n.Start(true)
						}
					}
					time.Sleep(2 * p.TTL)
					if err := l.Err(); err != nil {
						t.Fatalf("TTL %v: %v after an outage of %v (nodes hang: %v)", p.TTL, err, p.outlasts, hangs)
					}
					mustRelease(t, l)
				})
			}
		}
	}
}

// An outage of two thirds may be too long: the promise is not one that costs nothing to give.
func TestLeaseDoesNotOutlastEveryOutage(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		time.Sleep(ttl/3 - time.Millisecond)
		for _, n := range cl.nodes {
			n.Hold()
		}
		time.Sleep(ttl * 2 / 3)
		for _, n := range cl.nodes {
			n.Resume()
		}
		time.Sleep(ttl)
		wantIs(t, l.Err(), quorum.ErrLost)
	})
}

// The code that the document shows is the example's, which is run.
func TestDocumentedExampleIsRun(t *testing.T) {
	document, err := os.ReadFile("../docs/choosing.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("config_example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```go\n(.*?)```\n\nIt prints\n\n```\n(.*?)```").FindSubmatch(document)
	if shown == nil {
		t.Fatal("docs/choosing.md shows no example with what it prints")
	}
	code := strings.ReplaceAll("\n"+strings.TrimSpace(string(shown[1])), "\n", "\n\t")
	code = strings.ReplaceAll(code, "\n\t\n", "\n\n")
	output := strings.ReplaceAll("\n"+strings.TrimSpace(string(shown[2])), "\n", "\n\t// ")
	if !strings.Contains(string(source), code+"\n\t// Output:"+output+"\n") {
		t.Errorf("config_example_test.go does not contain, to the letter,\n%s\n\t// Output:%s", code, output)
	}
}
