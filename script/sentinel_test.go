package script_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/script"
)

// lingers is for how long a master may go on voting that Sentinel has replaced.
const lingers = 3 * time.Second

// behind is the check of a client that goes by what sentinels say.
func behind(fresh string, durable script.Durability) script.Check {
	req := another(fresh, durable)
	req.Lingers = lingers
	return req
}

// keepsUp returns a master whose replica keeps up, and that has to.
func keepsUp(t *testing.T) *redis.Client {
	t.Helper()
	master, replica := redisserver.Start(t), redisserver.Start(t)
	follow(t, replica, master)
	c := master.Client()
	must(t, c.ConfigSet(t.Context(), "min-replicas-to-write", "1"))
	eventually(t, "the replica counts", func() bool {
		return strings.Contains(must(t, c.Info(t.Context(), "replication")), "min_slaves_good_slaves:1")
	})
	return c
}

// Whoever goes by sentinels knows that they watch, whether one is there to be seen at the moment or not.
func TestWhoGoesBySentinelsDemandsAReplicaThatKeepsUp(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		unchanged(t, c, func() {
			if got := check(t, c, noon, behind("one", script.NotAsked)); got.Standing != script.StandingUnguarded {
				t.Errorf("got %+v, want unguarded", got)
			}
		})
	})
}

func TestWhoGoesBySentinelsTakesAMasterWhoseReplicaKeepsUp(t *testing.T) {
	if got := check(t, keepsUp(t), noon, behind("one", script.NotAsked)); got.Standing != script.StandingUnsettled {
		t.Errorf("got %+v, want unsettled", got)
	}
}

// The quarantine of a promoted replica outlasts what its predecessor may have granted since, also when somebody tells of a
// longer TTL later on. What it wrote to its own disk proves nothing.
func TestQuarantineBehindSentinelIsLonger(t *testing.T) {
	c := keepsUp(t)
	settled(t, c, 0, script.Durable)
	set(t, c, "run", "another")
	if got := check(t, c, noon, behind("two", script.Durable)); got.Incarnation != "two" || got.Quarantine != ttl+lingers {
		t.Errorf("got %+v, want the quarantine %v", got, ttl+lingers)
	}
	req := behind("three", script.NotAsked)
	req.TTL = time.Hour
	if got := check(t, c, noon, req); got.Incarnation != "two" || got.Quarantine != time.Hour+lingers {
		t.Errorf("got %+v, want the quarantine %v", got, time.Hour+lingers)
	}
}

func TestSettledQuarantineBehindSentinelIsLonger(t *testing.T) {
	for quarantine, until := range map[time.Duration]int64{
		0: 0, time.Second: noon + (ttl + lingers).Microseconds(), time.Hour: noon + (time.Hour + lingers).Microseconds(),
	} {
		onBoth(t, func(t *testing.T, c *redis.Client) {
			req := ruling(t, c, quarantine)
			req.Lingers = lingers
			wantStatus(t, sealedAt(t, c, noon, req, script.Seal{}), script.Settled)
			wantUntil(t, c, until)
		})
	}
}
