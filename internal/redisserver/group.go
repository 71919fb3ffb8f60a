package redisserver

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// GroupName is what the sentinels of every group call its master.
const GroupName = "mymaster"

// failoverPatience bounds what sentinels take for something. A sentinel that finds
// that it stood still for two seconds does nothing for thirty, or for five if it
// could be told so.
const failoverPatience = time.Minute

// downAfter is more than a second: a sentinel that has just heard of a new master
// asks it for the first time after one, and with one second replaces it at times
// before it could answer.
const downAfter = 1500 * time.Millisecond

// Group is a master with replicas, and the sentinels that watch it.
type Group struct {
	t testing.TB
	// Servers are the master and its replicas. The first is master at the start.
	Servers []*Server
	// Sentinels watch them. More than half of them decide.
	Sentinels []*Server
}

// GroupOptions say what a group is to be like.
type GroupOptions struct {
	Replicas, Sentinels int
	// At, if not nil, returns the address at which replicas and sentinels know the
	// first master, so that a test can stand between.
	At func(master *Server) string
	// Args are further arguments of the master and its replicas.
	Args []string
}

// StartGroup starts a group for the length of the test, and returns when its
// sentinels know all of it and each other. A master that has not answered for
// downAfter is replaced. It takes writes only while a replica keeps up
// (min-replicas-to-write).
func StartGroup(t testing.TB, opts GroupOptions) *Group {
	t.Helper()
	g := &Group{t: t}
	args := append([]string{"--min-replicas-to-write", "1", "--repl-diskless-sync-delay", "0"}, opts.Args...)
	master := Start(t, args...)
	g.Servers = append(g.Servers, master)
	at := master.Addr()
	if opts.At != nil {
		at = opts.At(master)
	}
	host, port, _ := net.SplitHostPort(at)
	for range opts.Replicas {
		replica := Start(t, append(args, "--replicaof", host+" "+port)...)
		g.Servers = append(g.Servers, replica)
		g.Await("a replica is in step", func() bool { return follows(t, replica) })
	}
	for range opts.Sentinels {
		g.Sentinels = append(g.Sentinels, g.sentinel(host, port, opts.Sentinels/2+1))
	}
	for _, s := range g.Sentinels {
		g.Await("a sentinel knows the group", func() bool {
			state := g.Watch(s)
			return state["num-slaves"] == fmt.Sprint(opts.Replicas) && state["num-other-sentinels"] == fmt.Sprint(opts.Sentinels-1)
		})
	}
	return g
}

// sentinel starts a sentinel for the length of the test.
func (g *Group) sentinel(host, port string, quorum int) *Server {
	g.t.Helper()
	s, err := Launch(Options{Dir: g.t.TempDir(), Sentinel: fmt.Sprintf(`sentinel monitor %[1]s %[2]s %[3]s %[4]d
sentinel down-after-milliseconds %[1]s %[5]d
sentinel failover-timeout %[1]s 5000
`, GroupName, host, port, quorum, downAfter.Milliseconds())})
	if err != nil {
		g.t.Fatal(err)
	}
	// By default it asks servers what they are every ten seconds, and tells an old master that it is a replica four hellos,
	// of two seconds each, after it has found it. An older Redis does not know this command, and is only slower.
	_ = s.Client().Do(g.t.Context(), "SENTINEL", "DEBUG", "info-period", "1000", "publish-period", "500", "tilt-period", "5000").Err()
	g.t.Cleanup(func() {
		s.Close()
		if g.t.Failed() {
			g.t.Logf("sentinel %s logged:\n%s", s.Addr(), s.Log())
		}
	})
	return s
}

// follows tells whether a server is a replica that is in step with its master.
func follows(t testing.TB, s *Server) bool {
	info, err := s.Client().Info(t.Context(), "replication").Result()
	return err == nil && strings.Contains(info, "master_link_status:up")
}

// Follows tells whether a server of the group is a replica that is in step.
func (g *Group) Follows(s *Server) bool { return follows(g.t, s) }

// Watch is what a sentinel knows of the master.
func (g *Group) Watch(s *Server) map[string]string {
	reply := redis.NewMapStringStringCmd(g.t.Context(), "sentinel", "master", GroupName)
	_ = s.Client().Process(g.t.Context(), reply) // one that is away knows nothing
	return reply.Val()
}

// Named is the master's address in the word of a sentinel.
func (g *Group) Named(s *Server) string {
	state := g.Watch(s)
	return net.JoinHostPort(state["ip"], state["port"])
}

// Promoted waits until all sentinels name one of the servers but the given one,
// and returns it.
func (g *Group) Promoted(old *Server) (promoted *Server) {
	g.t.Helper()
	g.Await("a replica is promoted", func() bool {
		for _, s := range g.Servers {
			all := s != old
			for _, sentinel := range g.Sentinels {
				all = all && (sentinel.PID() == 0 || g.Named(sentinel) == s.Addr())
			}
			if all {
				promoted = s
				return true
			}
		}
		return false
	})
	return promoted
}

// URL names the group's sentinels, as the node that they watch.
func (g *Group) URL() string {
	var addrs []string
	for _, s := range g.Sentinels {
		addrs = append(addrs, s.Addr())
	}
	return "redis+sentinel://" + strings.Join(addrs, ",") + "/" + GroupName
}

// Await waits until a condition holds, for as long as sentinels may take.
func (g *Group) Await(what string, condition func() bool) {
	g.t.Helper()
	for deadline := time.Now().Add(failoverPatience); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			g.t.Fatalf("not within %v: %s", failoverPatience, what)
		}
	}
}
