package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// Config says which nodes are examined, and for which clients.
type Config struct {
	// URLs are the nodes' addresses, see node.Open.
	URLs []string
	// TTL and NodeTimeout are those of the clients; 0 means their defaults.
	TTL, NodeTimeout time.Duration
	// Prefix is what they put in front of every name.
	Prefix string
}

// patience is how long a node has for one thing that it is asked, unless the clients give it longer. It is longer than most
// clients', so that a node that is too slow for them is told from one that does not answer at all.
const patience = 2 * time.Second

// trips is how many round trips are measured.
const trips = 5

// Examine examines the nodes. It fails where they are no set of nodes for locks (see quorum.Open), and when ctx ends.
func Examine(ctx context.Context, cfg Config) (Report, error) {
	set, err := quorum.Open(quorum.Config{Prefix: cfg.Prefix}, cfg.URLs...) // talks to nobody
	if err != nil {
		return Report{}, err
	}
	_ = set.Close() // never used
	clients := quorum.Config{TTL: cfg.TTL, NodeTimeout: cfg.NodeTimeout, Prefix: cfg.Prefix}.WithDefaults()
	e := examination{
		patience: max(patience, clients.NodeTimeout), wall: clients.Clock.Wall(), start: clients.Clock.Now(), name: uuid.NewString(), prefix: cfg.Prefix,
	}
	all := make([]facts, len(cfg.URLs))
	var nodes sync.WaitGroup
	for i, url := range cfg.URLs {
		nodes.Go(func() { all[i] = e.look(ctx, url) })
	}
	nodes.Wait()
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done() // at this moment: a connection keeps to the same deadline, and may be the first to notice
	}
	if ctx.Err() != nil {
		return Report{}, fmt.Errorf("the examination was ended: %w", context.Cause(ctx))
	}
	return judge(clients, all), nil
}

// facts is what was seen of a node.
type facts struct {
	node  string
	err   error // it cannot be talked to, and of the rest there is nothing
	plain bool  // it should speak TLS, and answers without

	trips       []time.Duration // sorted
	least, most time.Duration   // by which its clock is ahead of ours

	info        map[string]string
	infoErr     error
	settings    map[string]string
	settingsErr error
	recorded    map[string]string // by other clients, before we came

	tried  error         // what a lock asks of a node did not work, and of the rest there is nothing
	record script.Record // as it is now
	lacks  error         // what no script can try did not work
	deaf   error         // a subscription was not confirmed
	braces error         // nor one to the channel of a name with braces
}

// examination is what is common to all nodes.
type examination struct {
	patience time.Duration
	wall     time.Time // at start, so that all nodes are compared with one clock
	start    clock.Instant
	name     string // scratch
	prefix   string
}

// look gathers what there is to see of a node.
func (e *examination) look(ctx context.Context, url string) facts {
	n, err := node.Open(url) // without a guard, which would not let us talk to a replica
	if err != nil {
		return facts{err: err}
	}
	defer n.Close()
	f := facts{node: n.Name()}
	if f.err = e.measure(ctx, n, &f); f.err != nil {
		f.plain = errors.Is(f.err, node.ErrTimeout) && e.answersPlainly(ctx, url)
		return f
	}
	ask := func(what func(context.Context) (map[string]string, error)) (map[string]string, error) {
		ctx, cancel := context.WithTimeout(ctx, e.patience)
		defer cancel()
		return what(ctx)
	}
	f.info, f.infoErr = ask(n.Info)
	f.recorded, _ = ask(n.Record) // where that is not permitted, the try tells
	for _, pattern := range []string{"*append*", "save"} {
		some, err := ask(func(ctx context.Context) (map[string]string, error) { return n.Settings(ctx, pattern) })
		if err != nil {
			f.settings, f.settingsErr = nil, err
			break
		}
		if f.settings == nil {
			f.settings = map[string]string{}
		}
		for name, value := range some {
			f.settings[name] = value
		}
	}
	e.try(ctx, url, &f)
	return f
}

// measure takes some round trips, and compares the clocks. The first round trip makes the connection, and does not count.
func (e *examination) measure(ctx context.Context, n *node.Node, f *facts) error {
	for i := range 1 + trips {
		ctx, cancel := context.WithTimeout(ctx, e.patience)
		r, err := n.Time(ctx)
		cancel()
		if err != nil {
			return err
		}
		if i == 0 {
			continue
		}
		f.trips = append(f.trips, r.Received.Sub(r.Sent))
		least, most := r.Shown.Sub(e.ours(r.Received)), r.Shown.Sub(e.ours(r.Sent))
		if i == 1 || least > f.least {
			f.least = least
		}
		if i == 1 || most < f.most {
			f.most = most
		}
	}
	slices.Sort(f.trips)
	return nil
}

// ours is what this machine's clock shows at an instant, if nobody has set it since the examination began.
func (e *examination) ours(t clock.Instant) time.Time { return e.wall.Add(t.Sub(e.start)) }

// try does to a node what a client does that takes a lock: the check of the restart guard, every command, and a
// subscription. To the guard it says what is on record already, and nothing where there is no record: whoever examines may
// not know all nodes, nor the longest TTL.
func (e *examination) try(ctx context.Context, url string, f *facts) {
	n, err := node.Open(url)
	if err != nil {
		f.tried = err
		return
	}
	defer n.Close()
	nodes, _ := strconv.Atoi(f.recorded["nodes"])
	ms, _ := strconv.ParseInt(f.recorded["ttl"], 10, 64)
	ttl := time.Duration(ms) * time.Millisecond
	var mu sync.Mutex // a connection that was given up may be checked yet
	var record script.Record
	n.Guard(node.Guard{
		Client: func() string { return e.name }, Nodes: nodes, TTL: func() time.Duration { return ttl },
		Checked: func(r script.Record) {
			mu.Lock()
			defer mu.Unlock()
			record = r
		},
	})
	name := e.prefix + "redquorum_ping:" + e.name // the same on all nodes, so that they are refused alike
	probe := script.Probe{Name: name}
	tried, cancel := context.WithTimeout(ctx, e.patience)
	defer cancel()
	reply, err := n.Run(tried, probe, clock.Instant{})
	if err == nil && reply.Status != script.Probed {
		err = fmt.Errorf("%s: the probe was answered %q", f.node, reply.Status)
	}
	if f.tried = err; err != nil {
		return
	}
	mu.Lock()
	f.record = record
	mu.Unlock()
	f.lacks = e.permitted(ctx, n, script.Prepare(probe).Keys(), script.Channel(name))
	if f.deaf = e.hears(ctx, n, script.Channel(name)); f.deaf == nil {
		f.braces = e.hears(ctx, n, script.Channel(name+"{}"))
	}
}

// permitted tries what no script can, and what a lock may not need today: a server asks for a script's source only after a
// restart.
func (e *examination) permitted(ctx context.Context, n *node.Node, keys []string, channel string) error {
	ctx, cancel := context.WithTimeout(ctx, e.patience)
	defer cancel()
	return n.Permitted(ctx, keys, channel)
}

// hears tells why a node does not let us listen to a channel; nil if it does.
func (e *examination) hears(ctx context.Context, n *node.Node, channel string) error {
	heard := make(chan error, 1)
	stop := n.Listen(channel, e.patience, func(event node.Event) {
		if event.Subscribed || event.Err != nil {
			select {
			case heard <- event.Err:
			default: // what came first counts
			}
		}
	})
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, e.patience)
	defer cancel()
	select {
	case err := <-heard:
		return err
	case <-ctx.Done():
		return &node.Error{Node: n.Name(), Err: node.ErrTimeout}
	}
}
