package node_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// Whether it is found out at once or only later, nothing is sent to a server that must not have it.
func TestServerThatIsNoMasterOfItsOwnGetsNothing(t *testing.T) {
	for standing, want := range map[script.Standing]error{
		script.StandingReplica: node.ErrReplica, script.StandingUnguarded: node.ErrUnguarded,
	} {
		for title, answers := range map[string]map[string][]string{
			"at once": {"CHECK": {found(standing, "one")}},
			"later": {"CHECK": {found(script.StandingSettled, "one"), found(standing, "one")},
				"ACQUIRE": {"-READONLY You can't write against a read only replica.\r\n"}},
			"without the script": {"CHECK": {found(script.StandingSettled, "one"), found(standing, "one")}, "ACQUIRE": {noScript}},
			"as a stranger":      {"CHECK": {found(script.StandingSettled, "one"), found(standing, "one")}, "ACQUIRE": {told(script.Stranger)}},
		} {
			t.Run(string(standing)+" "+title, func(t *testing.T) {
				f := serve(t, inTurn(answers))
				n := guarded(open(t, f.url()), func(r script.Record) {
					if r.Standing != script.StandingSettled {
						t.Errorf("told of %+v", r)
					}
				})
				if title == "later" {
					_, err := ask(n, lock("a"), patience)
					wantError(t, err, verdict{refused: true})
				}
				for range 3 {
					_, err := ask(n, lock("a"), patience)
					wantError(t, err, verdict{})
					if !errors.Is(err, want) {
						t.Errorf("got %v, want %v", err, want)
					}
				}
				sent := 0
				for _, talk := range f.said() {
					for _, w := range talk {
						if strings.EqualFold(w, "acquire") {
							sent++
						}
					}
				}
				if first := map[bool]int{true: 0, false: 1}[title == "at once"]; sent != first {
					t.Errorf("%d requests were sent, want %d: %v", sent, first, f.said())
				}
			})
		}
	}
}

// A check is a part of the request that needs it, and so is its time. What was not sent after it has not been sent.
func TestHungCheckEndsWithTheRequest(t *testing.T) {
	settled := found(script.StandingSettled, "one")
	for title, answers := range map[string]map[string][]string{
		"of a new connection":        {"CHECK": {hang}},
		"with its source":            {"CHECK": {noScript}, "check": {hang}},
		"asking for the settings":    {"CHECK": {found(script.StandingAsk, "")}, "CONFIG": {hang}},
		"told the settings":          {"CHECK": {found(script.StandingAsk, ""), hang}},
		"in part":                    {"CHECK": {settled[:30]}},
		"of a script that is gone":   {"CHECK": {settled, hang}, "ACQUIRE": {noScript}},
		"of a stranger":              {"CHECK": {settled, hang}, "ACQUIRE": {told(script.Stranger)}},
		"of a stranger's connection": {"CHECK": {settled, hangUp, hang}, "ACQUIRE": {told(script.Stranger)}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			f := serve(t, inTurn(answers))
			n := guarded(open(t, f.url()), nil)
			if title == "of a stranger's connection" {
				_, err := ask(n, lock("a"), patience)
				wantError(t, err, verdict{})
			}
			endsInTime(t, n, verdict{timeout: true})
		})
	}
	t.Run("of a server in doubt", func(t *testing.T) {
		t.Parallel()
		f := serve(t, inTurn(map[string][]string{"CHECK": {settled, hang}, "ACQUIRE": {"-READONLY\r\n"}}))
		n := guarded(open(t, f.url()), nil)
		_, err := ask(n, lock("a"), patience)
		wantError(t, err, verdict{refused: true})
		endsInTime(t, n, verdict{timeout: true})
	})
}

// Errors of a check are those of the request, but that it was not sent.
func TestCheckThatFails(t *testing.T) {
	for answer, want := range map[string]verdict{
		"-NOPERM this user has no permissions to run the 'evalsha' command\r\n":                                       {refused: true, permanent: true},
		"-ERR The user executing the script can't run this command or subcommand script: ab, on @user_script:25.\r\n": {refused: true, permanent: true},
		"-LOADING Redis is loading the dataset in memory\r\n":                                                         {refused: true},
		"*6\r\n$7\r\ngranted\r\n:1\r\n:1\r\n$1\r\nh\r\n:1\r\n:1\r\n":                                                  {},
		"$-1\r\n": {},
		"+OK\r\n": {},
		hangUp:    {},
	} {
		t.Run(answer, func(t *testing.T) {
			for title, answers := range map[string]map[string][]string{
				"of a new connection": {"CHECK": {answer}},
				"of a stranger":       {"CHECK": {found(script.StandingSettled, "one"), answer}, "ACQUIRE": {told(script.Stranger)}},
			} {
				f := serve(t, inTurn(answers))
				n := guarded(with(t, options(f)), func(r script.Record) {
					if r.Incarnation != "one" {
						t.Errorf("%s: told of %+v", title, r)
					}
				})
				_, err := ask(n, lock("a"), patience)
				wantError(t, err, want)
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("%s: a password is told: %v", title, err)
				}
			}
		})
	}
}
