package node_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

func TestInvalidSentinelURLs(t *testing.T) {
	for _, tt := range []struct{ url, named, rule string }{
		{"redis+sentinel://", `"redis+sentinel://"`, "empty host"},
		{"redis+sentinel:///mymaster", `"redis+sentinel://"`, "empty host"},
		{"redis+sentinel://one,,two/mymaster", `"redis+sentinel://one,,two"`, "empty host"},
		{"redis+sentinel://one,:26379/mymaster", ":26379", "empty host"},
		{"redis+sentinel://one:port/mymaster", "redis+sentinel://", "host:port"},
		{"redis+sentinel://one two/mymaster", "redis+sentinel://", "host:port"},
		{"redis+sentinel://[::1/mymaster", "redis+sentinel://", "host:port"},
		{"redis+sentinel://one:0/mymaster", `"one:0"`, "1 to 65535"},
		{"redis+sentinel://one,two:70000/mymaster", `"two:70000"`, "1 to 65535"},
		{"redis+sentinel://one,two", `"redis+sentinel://one,two"`, "/master[/db]"},
		{"redis+sentinel://one/", `"redis+sentinel://one/"`, "/master[/db]"},
		{"redis+sentinel://one/mymaster/0/1", `"redis+sentinel://one/mymaster/0/1"`, "/master[/db]"},
		{"redis+sentinel://one/mymaster#1", "mymaster#1", "/master[/db]"},
		{"redis+sentinel://one/my%20master", `"my%20master"`, "letters, digits"},
		{"redis+sentinel://one/mymaster/two", `"redis+sentinel://one/mymaster/two"`, "options that go-redis knows"},
		{"redis+sentinel://one/mymaster/-1", "-1", "negative"},
		{"rediss+sentinel://one/mymaster?no_such_option=1", `"rediss+sentinel://one/mymaster"`, "options that go-redis knows"},
		{"redis+sentinel://one/mymaster?a=%zz", "redis+sentinel://", "percent-encoded"},
		{"redis+sentinel://one,two,ONE:26379/mymaster", "one:26379", "named twice"},
		{"unix+sentinel://one/mymaster", "", "redis://, rediss:// or unix://"},
	} {
		n, err := node.Open(tt.url)
		if err == nil {
			_ = n.Close()
			t.Errorf("%q: opened as %s", tt.url, n.Name())
			continue
		}
		if !strings.HasPrefix(err.Error(), "node: ") || !strings.Contains(err.Error(), tt.named) || !strings.Contains(err.Error(), tt.rule) {
			t.Errorf("%q: %v, want one that names %s and says %s", tt.url, err, tt.named, tt.rule)
		}
	}
}

func TestNamesAndAddressesBehindSentinel(t *testing.T) {
	for url, want := range map[string]struct{ name, address string }{
		"redis+sentinel://one/mymaster":                    {"mymaster@one:26379", "sentinel:mymaster@one:26379"},
		"redis+sentinel://user:pw@One:1,two:2/a.b-c_1/3":   {"a.b-c_1@One:1/3", "sentinel:a.b-c_1@one:1,two:2"},
		"rediss+sentinel://two.,one/mymaster?db=2":         {"mymaster@two.:26379/2", "sentinel:mymaster@one:26379,two:26379"},
		"redis+sentinel://[::1]:1,[2001:DB8::1]/mymaster/": {"mymaster@[::1]:1", "sentinel:mymaster@127.0.0.1:1,[2001:db8::1]:26379"},
	} {
		n, err := node.Open(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if n.Name() != want.name || n.Address() != want.address {
			t.Errorf("%s is called %q at %q, want %q at %q", url, n.Name(), n.Address(), want.name, want.address)
		}
		_ = n.Close()
	}
}

func TestPasswordsNeverLeakFromSentinelURLs(t *testing.T) {
	for _, password := range passwords {
		for _, form := range []string{
			"redis+sentinel://:%@one,two:26379/mymaster", "rediss+sentinel://user:%@one/mymaster/0", "redis+sentinel://user:%@one/mymaster/db",
			"redis+sentinel://user:%@one:port/mymaster", "redis+sentinel://user:%@", "redis+sentinel://user:%@,/mymaster",
			"redis+sentinel://user:%@one:99999/mymaster", "redis+sentinel://user:%@one", "redis+sentinel://user:%@one/mymaster?no_such_option=1",
			"redis+sentinel://one/mymaster?sentinel_password=%", "redis+sentinel://one/mymaster?sentinel_password=%&no_such_option=1",
			"redis+sentinel://one/mymaster/db?sentinel_username=user&sentinel_password=%", "redis+sentinel://one/my master?sentinel_password=%",
			"redis+sentinel://user:%@one/mymaster/-1", "redis+sentinel://user:%@one,one/mymaster",
		} {
			raw := strings.ReplaceAll(form, "%", password)
			n, err := node.Open(raw)
			if err != nil {
				if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "user:12") {
					t.Errorf("%q: the error shows it: %v", raw, err)
				}
				continue
			}
			if strings.Contains(n.Name()+n.Address(), "hunter2") {
				t.Errorf("%q: the name shows it: %s, %s", raw, n.Name(), n.Address())
			}
			_ = n.Close()
		}
	}
}

func TestInvalidFailoverOptions(t *testing.T) {
	for title, tt := range map[string]struct {
		opts *redis.FailoverOptions
		rule string
	}{
		"nil":                 {nil, "nil"},
		"no name":             {&redis.FailoverOptions{SentinelAddrs: []string{"one:1"}}, "no name of a master"},
		"another name":        {&redis.FailoverOptions{MasterName: "my master", SentinelAddrs: []string{"one:1"}}, `"my master"`},
		"no sentinels":        {&redis.FailoverOptions{MasterName: "mymaster"}, "no sentinels"},
		"an empty address":    {&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: []string{"one:1", ""}}, "no address"},
		"no port":             {&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: []string{"one"}}, `"one": want host:port`},
		"twice":               {&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: []string{"one:1", "One:01"}}, "named twice"},
		"a negative database": {&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: []string{"one:1"}, DB: -3}, "-3"},
		"a replica":           {&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: []string{"one:1"}, ReplicaOnly: true}, "ReplicaOnly"},
	} {
		n, err := node.NewFailover(tt.opts)
		switch {
		case err == nil:
			_ = n.Close()
			t.Errorf("%s: want an error", title)
		case !strings.Contains(err.Error(), tt.rule):
			t.Errorf("%s: %v, want one that says %s", title, err, tt.rule)
		}
	}
}

// Master and sentinels have passwords of their own, and no error shows one.
func TestCredentialsOfMasterAndSentinels(t *testing.T) {
	redisserver.Require(t)
	master := redisserver.Start(t, "--requirepass", "right")
	host, port, _ := strings.Cut(master.Addr(), ":")
	sentinel, err := redisserver.Launch(redisserver.Options{
		Dir: t.TempDir(), Sentinel: "requirepass right\nsentinel monitor mymaster " + host + " " + port + " 1\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sentinel.Close)
	for url, refused := range map[string]string{
		"redis+sentinel://:right@" + sentinel.Addr() + "/mymaster?sentinel_password=right":   "",
		"redis+sentinel://:right@" + sentinel.Addr() + "/mymaster?sentinel_password=hunter2": "WRONGPASS",
		"redis+sentinel://:right@" + sentinel.Addr() + "/mymaster":                           "NOAUTH",
		"redis+sentinel://:hunter2@" + sentinel.Addr() + "/mymaster?sentinel_password=right": "WRONGPASS",
	} {
		n := open(t, url)
		reply, err := ask(n, lock("a"), patience)
		switch {
		case refused == "" && (err != nil || reply.Status != script.Granted && reply.Status != script.Already):
			t.Errorf("%s: %+v, %v", n.Name(), reply, err)
		case refused != "" && (err == nil || !node.Permanent(err) || !strings.Contains(err.Error(), refused)):
			t.Errorf("%s: %v, want %s", n.Name(), err, refused)
		case refused != "" && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("the error shows it: %v", err)
		}
	}
}
