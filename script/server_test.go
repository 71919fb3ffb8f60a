package script_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/script"
)

// What a check finds out about the server itself, which only a real one tells.

// eventually waits for what two servers have to agree on.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// follow makes a server a replica of another, and waits until it has all of its data.
func follow(t *testing.T, replica, master *redisserver.Server) {
	t.Helper()
	host, port, _ := strings.Cut(master.Addr(), ":")
	must(t, master.Client().ConfigSet(t.Context(), "repl-diskless-sync-delay", "0")) // waits for no further replica
	must(t, replica.Client().Do(t.Context(), "REPLICAOF", host, port))
	eventually(t, "the replica is in step", func() bool {
		return strings.Contains(must(t, replica.Client().Info(t.Context(), "replication")), "master_link_status:up") &&
			maps.Equal(dump(t, master.Client()), dump(t, replica.Client()))
	})
}

// watch subscribes as a Sentinel does to a master that it watches.
func watch(t *testing.T, s *redisserver.Server) {
	t.Helper()
	sub := s.Client().Subscribe(t.Context(), "__sentinel__:hello")
	t.Cleanup(func() { _ = sub.Close() })
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestCheckTellsTheRunOfTheServer(t *testing.T) {
	s := redisserver.Start(t)
	c := s.Client()
	info := must(t, c.Info(t.Context(), "server", "replication"))
	got := check(t, c, noon, aCheck)
	if len(got.Run) != 40 || !strings.Contains(info, "run_id:"+got.Run+"\r\n") {
		t.Errorf("told the run %q of %s", got.Run, info)
	}
	if id := record(t, c)["replication"]; len(id) != 40 || !strings.Contains(info, "master_replid:"+id+"\r\n") {
		t.Errorf("recorded the replication id %q of %s", id, info)
	}
}

func TestReplicaIsToldAndNotWrittenTo(t *testing.T) {
	redisserver.Require(t)
	for title, writable := range map[string]string{"read-only": "yes", "writable": "no"} {
		t.Run(title, func(t *testing.T) {
			master, replica := redisserver.Start(t), redisserver.Start(t, "--replica-read-only", writable)
			for _, prepare := range []func(){
				func() {},
				func() { settled(t, master.Client(), 0, script.Durable) },
			} {
				prepare()
				follow(t, replica, master)
				unchanged(t, replica.Client(), func() {
					for _, durable := range []script.Durability{script.NotAsked, script.NotDurable, script.Durable} {
						long := another("two", durable)
						long.TTL, long.Nodes = time.Hour, 7
						if got := check(t, replica.Client(), noon, long); got.Standing != script.StandingReplica {
							t.Errorf("got %+v, want a replica", got)
						}
					}
				})
			}
		})
	}
}

// What its master answered last, it may never have heard of, however durable both of them were.
func TestReplicaThatIsPromotedHasForgotten(t *testing.T) {
	master, replica := redisserver.Start(t), redisserver.Start(t)
	settled(t, master.Client(), 0, script.Durable)
	follow(t, replica, master)
	must(t, replica.Client().Do(t.Context(), "REPLICAOF", "NO", "ONE"))
	c := replica.Client()
	unchanged(t, c, func() {
		if got := check(t, c, noon, another("two", script.NotAsked)); got.Standing != script.StandingAsk {
			t.Errorf("got %+v, want to be asked", got)
		}
	})
	got := check(t, c, noon, another("two", script.Durable))
	if got.Standing != script.StandingSettled || got.Incarnation != "two" || got.Quarantine != ttl {
		t.Errorf("got %+v, want a quarantine of %v", got, ttl)
	}
}

// The run is the same, but in between it was told another master's data.
func TestMasterThatWasAReplicaForAWhileHasForgotten(t *testing.T) {
	master, s := redisserver.Start(t), redisserver.Start(t)
	settled(t, s.Client(), 0, script.Durable)
	// The other one has the very same record: what it was copied from, say.
	must(t, master.Client().HSet(t.Context(), script.RecordKey, record(t, s.Client())))
	follow(t, s, master)
	must(t, s.Client().Do(t.Context(), "REPLICAOF", "NO", "ONE"))
	got := check(t, s.Client(), noon, another("two", script.Durable))
	if got.Incarnation != "two" || got.Quarantine != ttl {
		t.Errorf("got %+v, want a quarantine of %v", got, ttl)
	}
}

// Redis gives a master that gets its first replica another replication id, as it does to one that was a replica itself and
// has got rid of what would tell. It cannot be told apart, and costs a quarantine.
func TestMasterThatGetsItsFirstReplicaIsNotBelieved(t *testing.T) {
	master, replicas := redisserver.Start(t), []*redisserver.Server{redisserver.Start(t), redisserver.Start(t)}
	c := master.Client()
	settled(t, c, 0, script.Durable)
	follow(t, replicas[0], master)
	got := check(t, c, noon, another("two", script.Durable))
	if got.Standing != script.StandingSettled || got.Incarnation != "two" || got.Quarantine != ttl {
		t.Errorf("got %+v, want a quarantine of %v", got, ttl)
	}
	follow(t, replicas[1], master) // the second one changes nothing
	unchanged(t, c, func() {
		if got := check(t, c, noon, another("three", script.NotAsked)); got.Incarnation != "two" {
			t.Errorf("got %+v, want the same incarnation", got)
		}
	})
}

func TestMasterThatASentinelWatchesNeedsAReplicaThatKeepsUp(t *testing.T) {
	master, replica := redisserver.Start(t), redisserver.Start(t)
	watch(t, master)
	follow(t, replica, master)
	c := master.Client()
	for _, prepare := range []func(){
		func() {},
		func() { settled(t, c, 0, script.Durable) },
		func() { set(t, c, "run", "another") },
	} {
		must(t, c.ConfigSet(t.Context(), "min-replicas-to-write", "0"))
		unchanged(t, c, func() {
			for _, durable := range []script.Durability{script.NotAsked, script.Durable} {
				if got := check(t, c, noon, another("two", durable)); got.Standing != script.StandingUnguarded {
					t.Errorf("got %+v, want unguarded", got)
				}
			}
		})
		must(t, c.ConfigSet(t.Context(), "min-replicas-to-write", "1"))
		eventually(t, "the replica counts", func() bool {
			return strings.Contains(must(t, c.Info(t.Context(), "replication")), "min_slaves_good_slaves:1")
		})
		prepare()
	}
	// With a decision on record, and another run. Durable or not: the replica's disk is another one.
	got := check(t, c, noon, another("two", script.Durable))
	if got.Standing != script.StandingSettled || got.Incarnation != "two" || got.Quarantine != ttl {
		t.Errorf("got %+v, want a quarantine of %v", got, ttl)
	}
}

func TestOtherSubscribersAreNoSentinel(t *testing.T) {
	s := redisserver.Start(t)
	sub := s.Client().PSubscribe(t.Context(), "*")
	defer sub.Close()
	if err := sub.Subscribe(t.Context(), "__sentinel__", script.Channel(name)); err != nil {
		t.Fatal(err)
	}
	for range 3 { // else the check may come before them
		if _, err := sub.ReceiveTimeout(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if got := check(t, s.Client(), noon, aCheck); got.Standing != script.StandingUnsettled {
		t.Errorf("got %+v, want undecided", got)
	}
}

func TestEvictionPolicyIsTold(t *testing.T) {
	c := redisserver.Start(t).Client()
	for _, tt := range []struct{ policy, limit, want string }{
		{"noeviction", "100mb", ""},
		{"allkeys-lru", "100mb", "allkeys-lru"},
		{"volatile-ttl", "100mb", "volatile-ttl"},
		{"volatile-ttl", "0", ""},
		{"noeviction", "0", ""},
	} {
		must(t, c.ConfigSet(t.Context(), "maxmemory-policy", tt.policy))
		must(t, c.ConfigSet(t.Context(), "maxmemory", tt.limit))
		for range 2 { // with a record and without one
			if got := check(t, c, noon, aCheck); got.Evicts != tt.want {
				t.Errorf("%s with %s: told %q, want %q", tt.policy, tt.limit, got.Evicts, tt.want)
			}
		}
		must(t, c.FlushAll(t.Context()))
	}
}

// A server that may not be asked who it is could be any.
func TestCheckWithoutInfoIsAnError(t *testing.T) {
	s := redisserver.Start(t)
	c := without(t, s, "INFO")
	for _, prepare := range []func(){
		func() {},
		func() { settled(t, s.Client(), 0, script.Durable) },
		func() { set(t, s.Client(), "run", "") }, // which is what no answer looks like
		func() { set(t, s.Client(), "run", "another") },
	} {
		prepare()
		unchanged(t, s.Client(), func() {
			for _, durable := range []script.Durability{script.NotAsked, script.Durable} {
				if got, err := tryCheck(t, c, noon, another("two", durable)); err == nil {
					t.Errorf("got %+v, want an error", got)
				}
			}
			told := aRuling
			told.Run = "what somebody else was told"
			got, err := evalAt(t, c, noon, told, script.Seal{})
			if reply, odd := script.ParseReply(got); err == nil && (odd != nil || reply.Status != script.Stranger) {
				t.Errorf("settle: got %v, want a stranger", got)
			}
		})
	}
}

// Without it nobody knows whether a Sentinel is there, which most servers do not have.
func TestCheckWithoutPubSubWorksButExemptsNobody(t *testing.T) {
	s := redisserver.Start(t)
	c := without(t, s, "PUBSUB")
	settled(t, c, 0, script.Durable)
	if got := check(t, c, noon, aCheck); got.Standing != script.StandingSettled || got.Quarantine != 0 {
		t.Errorf("got %+v, want settled", got)
	}
	set(t, s.Client(), "run", "another")
	got := check(t, c, noon, another("two", script.Durable))
	if got.Standing != script.StandingSettled || got.Incarnation != "two" || got.Quarantine != ttl {
		t.Errorf("got %+v, want a quarantine of %v", got, ttl)
	}
}

// Whichever permission is missing, a script that it cuts off leaves no record that would pass for settled without its
// quarantine.
func TestMissingPermissionSettlesNothing(t *testing.T) {
	s := redisserver.Start(t)
	admin := s.Client()
	needed := commands(t, aCheck.Script())
	maps.Copy(needed, commands(t, aRuling.Script()))
	for command := range needed {
		t.Run(command, func(t *testing.T) {
			c := without(t, s, command)

			must(t, admin.FlushAll(t.Context()))
			_, _ = tryCheck(t, c, noon, aCheck)
			if until, ok := record(t, admin)["until"]; ok {
				t.Errorf("a node without a record is settled, with the quarantine %q", until)
			}

			must(t, admin.FlushAll(t.Context()))
			settled(t, admin, 0, script.Durable)
			before := record(t, admin)
			set(t, admin, "run", "another")
			_, _ = tryCheck(t, c, noon, another("two", script.NotDurable))
			if after := record(t, admin); after["run"] == before["run"] && after["until"] != "1795262430123457" {
				t.Errorf("a server that was started again has the record %v", after)
			}

			must(t, admin.FlushAll(t.Context()))
			req := ruling(t, admin, time.Hour)
			_, _ = evalAt(t, c, noon, req, script.Seal{})
			if until, ok := record(t, admin)["until"]; ok && until != "1795266000123457" {
				t.Errorf("settled with the quarantine %q", until)
			}
		})
	}
}

// A memory that is full takes no record, and half of one even less.
func TestFullMemoryTakesNoRecord(t *testing.T) {
	c := redisserver.Start(t).Client()
	settled(t, c, 0, script.Durable)
	set(t, c, "run", "another")
	must(t, c.ConfigSet(t.Context(), "maxmemory", "1"))
	unchanged(t, c, func() {
		if got, err := tryCheck(t, c, noon, another("two", script.NotDurable)); err == nil || !redis.HasErrorPrefix(err, "OOM") {
			t.Errorf("got %+v, %v, want an error", got, err)
		}
	})
}
