package node_test

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

func TestInvalidURLs(t *testing.T) {
	for _, tt := range []struct{ url, named, rule string }{
		{"", "", "without a scheme"},
		{"host:6379", "", "without a scheme"},
		{"//host:6379", "", "without a scheme"},
		{"http://host:6379", `"http"`, "redis, rediss or unix"},
		{"REDIS://host:6379", `"REDIS"`, "redis, rediss or unix"},
		{"redis+tls://host:6379", "", "redis://, rediss:// or unix://"},
		{"://host", `""`, "redis, rediss or unix"},
		{"redis://", `"redis:"`, "no host"},
		{"redis://:6379", `"redis://:6379"`, "no host"},
		{"redis:///0", `"redis:///0"`, "no host"},
		{"redis://host:port", "redis://", "host:port"},
		{"redis://ho st:6379", "redis://", "host:port"},
		{"redis://[::1:6379", "redis://", "host:port"},
		{"redis://host:0", `"host:0"`, "1 to 65535"},
		{"redis://host:65536", `"host:65536"`, "1 to 65535"},
		{"redis://host:6379/one", `"redis://host:6379/one"`, "[/db]"},
		{"redis://host:6379/0/1", `"redis://host:6379/0/1"`, "[/db]"},
		{"redis://host:6379/-1", "-1", "negative"},
		{"redis://host:6379?no_such_option=1", `"redis://host:6379"`, "options that go-redis knows"},
		{"redis://host:6379?db=x", `"redis://host:6379"`, "options that go-redis knows"},
		{"redis://host:6379?pool_size=-1", "-1", "negative"},
		{"redis://host:6379#1", `"redis://host:6379"`, "'#'"},
		{"unix://", "unix:", "/path/of/the.sock"},
		{"unix://tmp/redis.sock", `"unix://tmp/redis.sock"`, "has a host"},
		{"unix:///tmp/redis#1.sock", `"unix:///tmp/redis"`, "'#'"},
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

// passwords are such that people paste into a URL as they are. Each has hunter2 in it, and no part of it may be seen.
var passwords = []string{
	"hunter2", "hunter2/1", "12/hunter2", "/hunter2", "hunter2?a=b", "12?hunter2", "?hunter2", "hunter2#1", "12#hunter2", "#hunter2",
	"hunter2@x", "@hunter2", "12@hunter2", "hunter2%", "%hunter2", "%zzhunter2", "hunter2:1", "12:hunter2", "hunter2 1", "hunter2\n",
	"hunter2[", "]hunter2", "hunter2://x", "12://hunter2", "redis://hunter2", "hunter2\x7f", `hunter2\`, "hunter2;", "12/hunter2?#@", "hunter2é",
}

func TestPasswordsNeverLeak(t *testing.T) {
	for _, password := range passwords {
		for _, form := range []string{
			"redis://:%@host:6379", "redis://user:%@host:6379/0", "rediss://user:%@host", "redis://user:%@host:6379?no_such_option=1",
			"redis://user:%@host:6379/db", "redis://user:%@host:port", "redis://user:%@", "redis://user:%@:6379", "redis://user:%@host:99999",
			"unix://user:%@/tmp/redis.sock", "unix://:%@/tmp/redis.sock?no_such_option=1", "unix://:%@", "user:%@host:6379", ":%@host:6379",
			"http://user:%@host", "redis:user:%@host", "user:%://@host", "redis//user:%@host", "redis://user:%@host:6379/-1", "redis://user:%@ho st",
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

// Nor when the server is asked.
func TestPasswordsNeverLeakFromCalls(t *testing.T) {
	s := redisserver.Start(t, "--requirepass", "right")
	f := serve(t, on("TIME", hangUp))
	gone := serve(t, on("", ""))
	gone.stop()
	for _, addr := range []string{s.Addr(), f.Addr().String(), gone.Addr().String()} {
		for _, url := range []string{"redis://hunter2:hunter2@" + addr, "redis://:hunter2@" + addr + "/3", "rediss://:hunter2@" + addr} {
			n := open(t, url)
			_, err := ask(n, lock("a"), budget)
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v", n.Name(), err)
			}
		}
	}
}

func TestInvalidOptions(t *testing.T) {
	for title, tt := range map[string]struct {
		opts *redis.Options
		rule string
	}{
		"nil":                 {nil, "nil"},
		"no address":          {&redis.Options{}, "no address"},
		"no port":             {&redis.Options{Addr: "host"}, `"host": want host:port`},
		"port 0":              {&redis.Options{Addr: "host:0"}, "1 to 65535"},
		"port 70000":          {&redis.Options{Addr: "host:70000"}, "1 to 65535"},
		"no port number":      {&redis.Options{Addr: "host:"}, "1 to 65535"},
		"a URL":               {&redis.Options{Addr: "redis://user:hunter2@host:6379"}, "withheld"},
		"a URL, and a dialer": {&redis.Options{Addr: "redis://user:hunter2@host:6379", Dialer: new(net.Dialer).DialContext}, "withheld"},
		"a negative database": {&redis.Options{Addr: "host:1", DB: -3}, "-3"},
		"a negative pool":     {&redis.Options{Addr: "host:1", PoolSize: -2}, "-2"},
	} {
		n, err := node.New(tt.opts)
		switch {
		case err == nil:
			_ = n.Close()
			t.Errorf("%s: want an error", title)
		case !strings.Contains(err.Error(), tt.rule) || strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s: %v, want one that says %s", title, err, tt.rule)
		}
	}
}

func TestNamesAndAddresses(t *testing.T) {
	for url, want := range map[string]struct{ name, address string }{
		"redis://host:6379":            {"host:6379", "host:6379"},
		"redis://host":                 {"host:6379", "host:6379"},
		"redis://user:pw@HOST:6379/3":  {"HOST:6379/3", "host:6379"},
		"rediss://Host.:6380?db=2":     {"Host.:6380/2", "host:6380"},
		"redis://localhost:6379":       {"localhost:6379", "127.0.0.1:6379"},
		"redis://127.0.0.1":            {"127.0.0.1:6379", "127.0.0.1:6379"},
		"redis://[::1]:6379":           {"[::1]:6379", "127.0.0.1:6379"},
		"redis://[0:0:0:0:0:0:0:1]":    {"[0:0:0:0:0:0:0:1]:6379", "127.0.0.1:6379"},
		"redis://[::ffff:127.0.0.1]":   {"[::ffff:127.0.0.1]:6379", "127.0.0.1:6379"},
		"redis://[2001:DB8:0:0::1]:1":  {"[2001:DB8:0:0::1]:1", "[2001:db8::1]:1"},
		"redis://host:06379":           {"host:06379", "host:6379"},
		"unix:///tmp//a/../redis.sock": {"/tmp//a/../redis.sock", "unix:/tmp/redis.sock"},
		"unix:///tmp/redis.sock?db=1":  {"/tmp/redis.sock/1", "unix:/tmp/redis.sock"},
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

// The caller may go on using its options, for another node say.
func TestNewCopiesTheOptions(t *testing.T) {
	s := redisserver.Start(t)
	opts := &redis.Options{
		Addr: s.Addr(), MaxRetries: 7, ReadTimeout: time.Hour, WriteTimeout: time.Minute, PoolTimeout: time.Second,
		MinIdleConns: 3, DialTimeout: time.Second,
		OnConnect: func(context.Context, *redis.Conn) error { return nil },
	}
	n := with(t, opts)
	must(t, n, lock("a"), script.Granted)
	if opts.MaxRetries != 7 || opts.ReadTimeout != time.Hour || opts.WriteTimeout != time.Minute || opts.PoolTimeout != time.Second ||
		opts.MinIdleConns != 3 || opts.Dialer != nil || opts.MaintNotificationsConfig != nil || opts.ContextTimeoutEnabled ||
		opts.DisableIdentity || opts.DialerRetries != 0 || opts.Network != "" || opts.Protocol != 0 {
		t.Errorf("the caller's options were changed: %+v", opts)
	}

	opts.Addr = "elsewhere:1"
	opts.Password = "another"
	opts.TLSConfig = &tls.Config{}
	opts.Dialer = func(context.Context, string, string) (net.Conn, error) {
		t.Error("a dialler set later was called")
		return nil, net.ErrClosed
	}
	if err := s.Restart(); err != nil { // a new connection
		t.Fatal(err)
	}
	must(t, n, lock("a"), script.Granted)
	stop := n.Listen("c", budget, func(node.Event) {})
	eventually(t, "somebody listens", func() bool { return len(s.Client().PubSubChannels(t.Context(), "c").Val()) == 1 })
	stop()
}

func TestOptionsOfTheURLAreKept(t *testing.T) {
	s := redisserver.Start(t)
	n := open(t, s.URL()+"/5?client_name=from_the_url")
	must(t, n, lock("a"), script.Granted)
	list := s.Client().ClientList(t.Context()).Val()
	if !strings.Contains(list, "name=from_the_url") || !strings.Contains(list, "db=5") {
		t.Errorf("the server sees %s", list)
	}
}
