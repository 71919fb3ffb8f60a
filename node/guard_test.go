package node_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// word is what a fake notes of a command: its name, and for a script the script's, in lower case if it came with its
// source.
func word(command []string) string {
	if len(command) > 1 {
		for _, s := range script.All() {
			switch command[1] {
			case s.SHA:
				return strings.ToUpper(s.Name)
			case s.Source:
				return s.Name
			}
		}
	}
	return strings.ToUpper(command[0])
}

// said is what arrived at a fake, connection by connection.
func (f *fake) said() [][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([][]string, len(f.talks))
	for i, talk := range f.talks {
		all[i] = slices.Clone(talk)
	}
	return all
}

// wantSaid checks what arrived, over one connection.
func (f *fake) wantSaid(t *testing.T, want ...string) {
	t.Helper()
	if said := f.said(); len(said) != 1 || !slices.Equal(said[0], want) {
		t.Errorf("sent %v, want %v over one connection", said, want)
	}
}

// args are the arguments of a script, without its keys.
func args(command []string) []string {
	keys, _ := strconv.Atoi(command[2])
	return command[3+keys:]
}

// found is an answer to a check.
func found(standing script.Standing, incarnation string) string {
	return fmt.Sprintf("*10\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n$3\r\nrun\r\n:0\r\n:30000\r\n:3\r\n:1000000\r\n:%d\r\n$0\r\n\r\n:0\r\n",
		len(standing), standing, len(incarnation), incarnation, time.Now().UnixMicro())
}

// told is an answer to another script.
func told(status script.Status) string {
	return fmt.Sprintf("*6\r\n$%d\r\n%s\r\n:1\r\n:30000\r\n$4\r\nme:1\r\n:1\r\n:%d\r\n", len(status), status, time.Now().UnixMicro())
}

// inTurn answers each word with one of its answers after the other, the last of them for ever. Words in lower case, with
// the source, are answered like those in upper case if they have no answers of their own.
func inTurn(answers map[string][]string) func([]string) string {
	var mu sync.Mutex
	return func(command []string) string {
		mu.Lock()
		defer mu.Unlock()
		w := word(command)
		if _, ok := answers[w]; !ok {
			w = strings.ToUpper(w)
		}
		list := answers[w]
		if len(list) == 0 {
			return map[bool]string{true: "+OK\r\n"}[w == "AUTH"]
		}
		if len(list) > 1 {
			answers[w] = list[1:]
		}
		return list[0]
	}
}

const noScript = "-NOSCRIPT No matching script. Please use EVAL.\r\n"

// guarded turns a node's restart guard on.
func guarded(n *node.Node, checked func(script.Record)) *node.Node {
	n.Guard(node.Guard{Client: uuid.NewString, Nodes: 3, TTL: func() time.Duration { return ttl }, Checked: checked})
	return n
}

func TestFirstScriptOfEveryConnectionComesAfterACheck(t *testing.T) {
	f := serve(t, func(c []string) string {
		switch word(c) {
		case "CHECK":
			return found(script.StandingSettled, "one")
		case "ACQUIRE":
			if got := args(c)[1]; got != "one" {
				t.Errorf("an acquire carries the incarnation %q", got)
			}
			return granted()
		case "RENEW":
			return hangUp
		}
		return ""
	})
	n := guarded(open(t, f.url()), nil)
	for range 3 {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { must(t, n, lock("a"), script.Granted) })
		}
		all.Wait()
		_, _ = ask(n, script.Renew{Name: "a", Holder: "me:1", Count: 1, TTL: ttl}, patience)
	}
	said := f.said()
	if len(said) < 3 {
		t.Errorf("there were %d connections, and the test shows little", len(said))
	}
	for _, talk := range said {
		if talk = talk[slices.Index(talk, "HELLO")+1:]; len(talk) > 0 && talk[0] != "CHECK" {
			t.Errorf("sent %v, want a check first", talk)
		}
	}
}

func TestStrangerIsCheckedAndAskedOnceMore(t *testing.T) {
	t.Run("and is known then", func(t *testing.T) {
		var carried []string
		turns := inTurn(map[string][]string{
			"CHECK":   {found(script.StandingSettled, "one"), found(script.StandingSettled, "two")},
			"ACQUIRE": {told(script.Stranger), granted()},
		})
		f := serve(t, func(c []string) string {
			if word(c) == "ACQUIRE" {
				carried = append(carried, args(c)[1])
			}
			return turns(c)
		})
		must(t, guarded(open(t, f.url()), nil), lock("a"), script.Granted)
		f.wantSaid(t, "HELLO", "CHECK", "ACQUIRE", "CHECK", "ACQUIRE")
		if !slices.Equal(carried, []string{"one", "two"}) {
			t.Errorf("carried %q", carried)
		}
	})
	t.Run("but not for ever", func(t *testing.T) {
		f := serve(t, inTurn(map[string][]string{
			"CHECK": {found(script.StandingSettled, "one")}, "ACQUIRE": {told(script.Stranger)},
		}))
		must(t, guarded(open(t, f.url()), nil), lock("a"), script.Stranger)
		f.wantSaid(t, "HELLO", "CHECK", "ACQUIRE", "CHECK", "ACQUIRE")
	})
	t.Run("and not after its time is up", func(t *testing.T) {
		until := make(chan struct{})
		f := serve(t, func(c []string) string {
			switch word(c) {
			case "CHECK":
				return found(script.StandingSettled, "one")
			case "ACQUIRE":
				<-until
				return told(script.Stranger)
			}
			return ""
		})
		n := guarded(open(t, f.url()), nil)
		last := n.Clock().Now().Add(budget)
		time.AfterFunc(budget+10*time.Millisecond, func() { close(until) })
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if got, err := n.Run(ctx, lock("a"), last); err != nil || got.Status != script.Stranger {
			t.Errorf("got %+v, %v, want a stranger", got, err)
		}
		f.wantSaid(t, "HELLO", "CHECK", "ACQUIRE")
	})
}

// A server that does not know a script any more may have been started again behind a proxy.
func TestServerThatForgotAScriptIsCheckedBeforeItGetsTheSource(t *testing.T) {
	var carried []string
	turns := inTurn(map[string][]string{
		"CHECK": {noScript}, "check": {found(script.StandingSettled, "one"), found(script.StandingSettled, "two")},
		"ACQUIRE": {noScript}, "acquire": {granted()},
	})
	f := serve(t, func(c []string) string {
		if word(c) == "acquire" {
			carried = append(carried, args(c)[1])
		}
		return turns(c)
	})
	must(t, guarded(open(t, f.url()), nil), lock("a"), script.Granted)
	f.wantSaid(t, "HELLO", "CHECK", "check", "ACQUIRE", "CHECK", "check", "acquire")
	if !slices.Equal(carried, []string{"two"}) {
		t.Errorf("carried %q, want what the last check found", carried)
	}
}

func TestAnswersThatGiveDoubtAreFollowedByACheck(t *testing.T) {
	for answer, doubt := range map[string]bool{
		"READONLY You can't write against a read only replica.":                                                         true,
		"READONLY You can't write against a read only replica. script: ab, on @user_script:58.":                         true,
		"ERR Error running script (call to f_ab): @user_script:58: -READONLY You can't write against a read only slave": true,
		"LOADING Redis is loading the dataset in memory":                                                                true,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":                              true,
		"OOM command not allowed when used memory > 'maxmemory'.":                                                       false,
		"ERR wrong number of arguments":                                                                                 false,
	} {
		t.Run(answer, func(t *testing.T) {
			f := serve(t, inTurn(map[string][]string{
				"CHECK":   {found(script.StandingSettled, "one"), "-LOADING still\r\n", found(script.StandingSettled, "two")},
				"ACQUIRE": {"-" + answer + "\r\n", granted()},
			}))
			n := guarded(open(t, f.url()), nil)
			if _, err := ask(n, lock("a"), patience); !node.Refused(err) {
				t.Errorf("got %v, want the answer", err)
			}
			if doubt {
				// A check that fails cures no doubt.
				_, err := ask(n, lock("a"), patience)
				wantError(t, err, verdict{refused: true})
			}
			must(t, n, lock("a"), script.Granted)
			must(t, n, lock("a"), script.Granted)
			// go-redis may have thrown the connection away, and the next one is checked, too: so two checks at least.
			want := `^CHECK ACQUIRE( CHECK){2,} ACQUIRE ACQUIRE$`
			if !doubt {
				want = `^CHECK ACQUIRE ACQUIRE ACQUIRE$`
			}
			said := strings.ReplaceAll(strings.Join(slices.Concat(f.said()...), " "), "HELLO ", "")
			if !regexp.MustCompile(want).MatchString(said) {
				t.Errorf("sent %s, want %s", said, want)
			}
		})
	}
}

func TestWithoutTheGuardNothingIsChecked(t *testing.T) {
	f := serve(t, func(c []string) string {
		if word(c) == "ACQUIRE" {
			if got := args(c)[1]; got != "" {
				t.Errorf("carried the incarnation %q", got)
			}
			return granted()
		}
		return ""
	})
	must(t, open(t, f.url()), lock("a"), script.Granted)
	f.wantSaid(t, "HELLO", "TIME", "ACQUIRE")
}

// A subscription is no vote.
func TestListeningNeedsNoCheck(t *testing.T) {
	s := redisserver.Start(t)
	for _, rule := range []string{"-evalsha", "-eval"} {
		if err := s.Client().Do(t.Context(), "ACL", "SETUSER", "default", rule).Err(); err != nil {
			t.Fatal(err)
		}
	}
	n := guarded(open(t, s.URL()), nil)
	_, err := ask(n, lock("a"), patience)
	wantError(t, err, verdict{refused: true, permanent: true})
	var e ear
	stop := n.Listen("channel", beat, e.hear)
	defer stop()
	eventually(t, "subscribed", func() bool { return e.subscribed() == 1 })
	if err := s.Client().Publish(t.Context(), "channel", "0").Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "heard", func() bool { return slices.Equal(e.messages(), []string{"0"}) })
}
