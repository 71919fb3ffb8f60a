package node_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

const secret = "s3cret-Of-All"

// options are those of a client that logs in to a fake.
func options(f *fake) *redis.Options {
	return &redis.Options{Addr: f.Addr().String(), Username: "me", Password: secret}
}

func TestCheckTellsTheServerWhatTheClientKnows(t *testing.T) {
	var sent [][]string
	f := serve(t, func(c []string) string {
		switch word(c) {
		case "CHECK":
			sent = append(sent, args(c))
			return found(script.StandingSettled, "one")
		case "ACQUIRE":
			return granted()
		}
		return ""
	})
	longest := ttl
	n := open(t, f.url())
	n.Guard(node.Guard{Client: uuid.NewString, Nodes: 7, TTL: func() time.Duration { return longest }})
	for _, d := range []time.Duration{ttl, time.Hour} {
		longest = d
		if _, err := n.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(sent) != 3 { // one of them the connection's
		t.Fatalf("checked with %q", sent)
	}
	fresh := map[string]bool{}
	for i, a := range sent {
		if want := []string{"0", a[1], map[bool]string{true: "30000", false: "3600000"}[i < 2], "7", "", "0"}; !slices.Equal(a, want) {
			t.Errorf("checked with %q, want %q", a, want)
		}
		fresh[a[1]] = true
	}
	if len(fresh) != 3 {
		t.Errorf("an incarnation was offered twice: %q", sent)
	}
}

// Before anything goes out on a connection, the coordinator knows what was found.
func TestCheckedIsToldBeforeTheFirstScript(t *testing.T) {
	arrived := make(chan string, 10)
	f := serve(t, func(c []string) string {
		switch w := word(c); w {
		case "CHECK":
			return found(script.StandingSettled, "one")
		case "ACQUIRE":
			arrived <- w
			return granted()
		}
		return ""
	})
	n := guarded(open(t, f.url()), func(r script.Record) {
		select {
		case w := <-arrived:
			t.Errorf("%s has arrived before", w)
		default:
		}
		want := script.Record{
			Standing: script.StandingSettled, Incarnation: "one", Run: "run", TTL: ttl, Nodes: 3, Age: time.Second, Now: r.Now,
		}
		if r != want {
			t.Errorf("told of %+v, want %+v", r, want)
		}
		arrived <- "checked"
	})
	must(t, n, lock("a"), script.Granted)
	if first, second := <-arrived, <-arrived; first != "checked" || second != "ACQUIRE" || len(arrived) > 0 {
		t.Errorf("%s came before %s", first, second)
	}
}

// Only a server that says all three forgets nothing. One that may not be asked is not trusted.
func TestWhichServersWriteEverythingToDisk(t *testing.T) {
	config := func(settings ...string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "*%d\r\n", len(settings))
		for _, s := range settings {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(s), s)
		}
		return b.String()
	}
	for title, tt := range map[string]struct {
		answer string
		want   script.Durability
	}{
		"all three": {config("appendonly", "yes", "appendfsync", "always", "no-appendfsync-on-rewrite", "no"), script.Durable},
		"among others": {config("appendfilename", "appendonly.aof", "no-appendfsync-on-rewrite", "no", "appendfsync", "always",
			"appendonly", "yes"), script.Durable},
		"off":           {config("appendonly", "no", "appendfsync", "always", "no-appendfsync-on-rewrite", "no"), script.NotDurable},
		"every second":  {config("appendonly", "yes", "appendfsync", "everysec", "no-appendfsync-on-rewrite", "no"), script.NotDurable},
		"not always":    {config("appendonly", "yes", "appendfsync", "always", "no-appendfsync-on-rewrite", "yes"), script.NotDurable},
		"one is hidden": {config("appendonly", "yes", "appendfsync", "always"), script.NotDurable},
		"nothing":       {config(), script.NotDurable},
		"not permitted": {"-NOPERM this user has no permissions to run the 'config|get' command\r\n", script.NotDurable},
		"not known":     {"-ERR unknown command 'CONFIG'\r\n", script.NotDurable},
	} {
		t.Run(title, func(t *testing.T) {
			var told []string
			f := serve(t, func(c []string) string {
				switch word(c) {
				case "CHECK":
					told = append(told, args(c)[4])
					if len(told) == 1 {
						return found(script.StandingAsk, "")
					}
					return found(script.StandingSettled, "one")
				case "CONFIG":
					return tt.answer
				case "ACQUIRE":
					return granted()
				}
				return ""
			})
			must(t, guarded(open(t, f.url()), nil), lock("a"), script.Granted)
			f.wantSaid(t, "HELLO", "CHECK", "CONFIG", "CHECK", "ACQUIRE")
			if !slices.Equal(told, []string{"", string(tt.want)}) {
				t.Errorf("told %q, want %q", told, tt.want)
			}
		})
	}
}

// A decision about an incarnation is a request like others: it expires, and what it finds is looked at.
func TestDecisionIsSentToTheServerThatWasFound(t *testing.T) {
	for status, works := range map[script.Status]bool{
		script.Settled: true, script.Stranger: false, script.Expired: false,
	} {
		t.Run(string(status), func(t *testing.T) {
			var sent []string
			f := serve(t, func(c []string) string {
				switch word(c) {
				case "CHECK":
					return found(script.StandingUnsettled, "one")
				case "SETTLE":
					sent = args(c)
					return told(status)
				}
				return ""
			})
			n := guarded(open(t, f.url()), nil)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			r, err := n.Check(ctx)
			if err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			err = n.Settle(ctx, r, time.Minute, n.Clock().Now().Add(time.Second))
			if (err == nil) != works || node.Sent(err) {
				t.Errorf("got %v", err)
			}
			if last := micros(t, sent[0]); last > now.Add(time.Second).UnixMicro()+2000 || last < now.UnixMicro() {
				t.Errorf("its last moment is %d", last)
			}
			if want := []string{sent[0], "one", "run", "60000", "30000", "3", "no", "0"}; !slices.Equal(sent, want) {
				t.Errorf("sent %q, want %q", sent, want)
			}
			want := []string{"HELLO", "CHECK", "CHECK", "CONFIG", "SETTLE"}
			if works {
				want = append(want, "CHECK")
			}
			f.wantSaid(t, want...)
		})
	}
}
