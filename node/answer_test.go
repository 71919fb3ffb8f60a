package node_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

func micros(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAnswersThatAreErrors(t *testing.T) {
	refused := verdict{refused: true}
	permanent := verdict{refused: true, permanent: true}
	cutOff := verdict{refused: true, sent: true}
	for answer, want := range map[string]verdict{
		"NOAUTH Authentication required.":                                                                       permanent,
		"WRONGPASS invalid username-password pair or user is disabled.":                                         permanent,
		"DENIED Redis is running in protected mode because protected mode is enabled":                           permanent,
		"ERR invalid password":                                                                                  permanent,
		"NOPERM this user has no permissions to run the 'evalsha' command":                                      permanent,
		"NOPERM this user has no permissions to access one of the keys used as arguments":                       permanent,
		"ERR unknown command 'EVALSHA', with args beginning with: ":                                             permanent,
		"ERR The user executing the script can't run this command or subcommand script: ab, on @user_script:1.": {refused: true, permanent: true, sent: true},
		"ERR Error running script (call to f_ab): @user_script:1: -NOPERM this user has no permissions":         {refused: true, permanent: true, sent: true},
		"ERR Unknown Redis command called from script script: ab, on @user_script:1.":                           {refused: true, permanent: true, sent: true},
		"WRONGTYPE Operation against a key holding the wrong kind of value script: ab, on @user_script:30.":     cutOff,
		"ERR Error running script (call to f_ab): @user_script:1: user_script:1: attempt to compare nil":        cutOff,
		"READONLY You can't write against a read only replica.":                                                 refused,
		"LOADING Redis is loading the dataset in memory":                                                        refused,
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":                refused,
		"OOM command not allowed when used memory > 'maxmemory'.":                                               refused,
		"MISCONF Errors writing to the AOF file: No space left on device":                                       refused,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":                      refused,
		"CLUSTERDOWN The cluster is down":                                                                       refused,
		"MOVED 1 127.0.0.1:1":                                                                                   refused,
		"ERR max number of clients reached":                                                                     refused,
	} {
		t.Run(answer, func(t *testing.T) {
			f := serve(t, on("EVALSHA", "-"+answer+"\r\n"))
			_, err := ask(open(t, f.url()), lock("a"), patience)
			wantError(t, err, want)
			if n := f.count("EVALSHA"); n != 1 {
				t.Errorf("sent %d times", n)
			}
			var reply redis.Error
			if !errors.As(err, &reply) || reply.Error() != answer {
				t.Errorf("got %v, want what the server said", err)
			}
		})
	}
}

func TestAnswersThatAreOdd(t *testing.T) {
	for title, answer := range map[string]string{
		"OK":               "+OK\r\n",
		"nothing":          "$-1\r\n",
		"a short list":     "*2\r\n:1\r\n:2\r\n",
		"a list of lists":  "*6\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n",
		"another protocol": "HTTP/1.1 400 Bad Request\r\n\r\n",
	} {
		t.Run(title, func(t *testing.T) {
			f := serve(t, on("EVALSHA", answer))
			got, err := ask(open(t, f.url()), lock("a"), patience)
			if err == nil {
				t.Fatalf("got %+v, want an error", got)
			}
			if !node.Sent(err) || node.Permanent(err) {
				t.Errorf("%v: want sent, and not permanent", err)
			}
		})
	}
}

// What the server itself says to the clients that it does not want.
func TestRefusalsOfARealServer(t *testing.T) {
	s := redisserver.Start(t, "--requirepass", "s3cret", "--rename-command", "PTTL", "")
	admin := redis.NewClient(&redis.Options{Addr: s.Addr(), Password: "s3cret", DisableIdentity: true})
	defer admin.Close()
	acl := func(user string, rules ...any) string {
		t.Helper()
		args := append([]any{"ACL", "SETUSER", user, "reset", "on", ">pw", "~*", "&*", "+@all"}, rules...)
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("redis://%s:pw@%s", user, s.Addr())
	}
	permanent := verdict{refused: true, permanent: true}
	cutOff := verdict{refused: true, permanent: true, sent: true}
	for title, tt := range map[string]struct {
		url  string
		want verdict
	}{
		"no password":             {s.URL(), permanent},
		"a wrong password":        {"redis://:wr0ng@" + s.Addr(), permanent},
		"an unknown user":         {"redis://nobody:wr0ng@" + s.Addr(), permanent},
		"scripts not permitted":   {acl("noscripts", "-evalsha"), permanent},
		"the time not permitted":  {acl("notime", "-time"), permanent},
		"no keys":                 {acl("nokeys", "resetkeys"), permanent},
		"a command not permitted": {acl("noset", "-set"), cutOff},
		"a command renamed":       {acl("anyone"), cutOff}, // PTTL, see above
	} {
		t.Run(title, func(t *testing.T) {
			_, err := ask(open(t, tt.url), lock("a"), patience)
			wantError(t, err, tt.want)
		})
	}
	t.Run("a password for a server without one", func(t *testing.T) {
		_, err := ask(open(t, "redis://:pw@"+redisserver.Start(t).Addr()), lock("a"), patience)
		if err != nil && !node.Permanent(err) { // Redis 6 and later let the default user in with any
			t.Errorf("got %v, want a permanent error", err)
		}
	})
	t.Run("a database that there is not", func(t *testing.T) {
		_, err := ask(open(t, "redis://:s3cret@"+s.Addr()+"/99"), lock("a"), patience)
		wantError(t, err, verdict{refused: true})
	})
}

func TestErrorInsideAScriptIsRefusedAndSent(t *testing.T) {
	s := redisserver.Start(t)
	if err := s.Client().LPush(t.Context(), script.FenceKey("a"), 1).Err(); err != nil {
		t.Fatal(err)
	}
	_, err := ask(open(t, s.URL()), lock("a"), patience)
	wantError(t, err, verdict{refused: true, sent: true})
}

func TestUnknownScriptIsSentWithItsSource(t *testing.T) {
	s := redisserver.Start(t)
	n := open(t, s.URL())
	for _, mode := range []string{"SYNC", "ASYNC"} {
		for range 2 {
			must(t, n, lock("a"), script.Granted)
			if err := s.Client().Do(t.Context(), "SCRIPT", "FLUSH", mode).Err(); err != nil {
				t.Fatal(err)
			}
			must(t, n, unlock("a"), script.Released)
		}
	}
}

func TestCallsAfterClose(t *testing.T) {
	f := serve(t, on("EVALSHA", hang))
	n := open(t, f.url())
	done := make(chan error)
	go func() {
		_, err := ask(n, lock("a"), time.Minute)
		done <- err
	}()
	eventually(t, "the request is under way", func() bool { return f.count("EVALSHA") == 1 })
	for range 3 {
		if err := n.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	select {
	case err := <-done:
		if !node.Sent(err) {
			t.Errorf("the request under way: %v, want sent", err)
		}
	case <-time.After(patience):
		t.Fatal("Close left a request under way")
	}
	_, err := ask(n, lock("a"), patience)
	wantError(t, err, verdict{})
	if !errors.Is(err, node.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	n.Listen("channel", time.Second, func(node.Event) { t.Error("heard something after Close") })()
}
