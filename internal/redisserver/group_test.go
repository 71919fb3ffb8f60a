package redisserver

import "testing"

// Data follow the master to its replica, and the old master follows the new one when it is back.
func TestGroupReplacesItsMaster(t *testing.T) {
	g := StartGroup(t, GroupOptions{Replicas: 2, Sentinels: 3})
	old := g.Servers[0]
	if got := g.Named(g.Sentinels[2]); got != old.Addr() {
		t.Fatalf("the master is at %s, want %s", got, old.Addr())
	}
	set(t, old, "key")
	g.Await("all have it", func() bool { return keys(t, g.Servers[1]) == 1 && keys(t, g.Servers[2]) == 1 })
	old.Kill()
	promoted := g.Promoted(old)
	if n := keys(t, promoted); n != 1 {
		t.Errorf("the new master has %d keys", n)
	}
	if err := g.Sentinels[0].Restart(); err != nil {
		t.Fatal(err)
	}
	if got := g.Named(g.Sentinels[0]); got != promoted.Addr() {
		t.Errorf("a restarted sentinel names %s, want %s", got, promoted.Addr())
	}
	if err := old.Restart(); err != nil {
		t.Fatal(err)
	}
	g.Await("the old master follows the new one", func() bool { return g.Follows(old) })
}
