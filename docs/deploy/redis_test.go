package deploy

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

const (
	secretFolder = "/etc/redquorum/secret"
	password     = "0123456789abcdef"
)

// servers are real ones with the configuration of the ConfigMap, and with what docs/deploy.md makes the Secret of. Only the
// folders are others.
func servers(t *testing.T, n int) (all []*redisserver.Server) {
	t.Helper()
	redisserver.Require(t)
	conf, ok := of[core.ConfigMap](t, load(t), "ConfigMap", name).Data["redis.conf"]
	if !ok {
		t.Fatal("the ConfigMap has no redis.conf")
	}
	for range n {
		data, secret, file := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "redis.conf")
		conf := replace(t, replace(t, conf, "dir /data\n", "dir "+data+"\n"), secretFolder, secret)
		users := "user default on >" + password + " ~* &* +@all\n"
		err := errors.Join(os.WriteFile(file, []byte(conf), 0o600), os.WriteFile(filepath.Join(secret, "users.conf"), []byte(users), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, redisserver.Start(t, "--include", file)) // the last word on everything that it names
	}
	return all
}

// replace replaces what has to be there.
func replace(t *testing.T, text, old, by string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q is there %d times, want once, in\n%s", old, strings.Count(text, old), text)
	}
	return strings.Replace(text, old, by, 1)
}

// open returns a client of its own.
func open(t *testing.T, servers []*redisserver.Server) *quorum.Coordinator {
	t.Helper()
	var urls []string
	for _, s := range servers {
		urls = append(urls, "redis://:"+password+"@"+s.Addr())
	}
	locks, err := quorum.Open(quorum.Config{TTL: time.Minute, NodeTimeout: 5 * time.Second}, urls...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// The power fails in the whole building. Nobody has forgotten anything, and nobody waits.
func TestNodesForgetNothingAndVoteAtOnce(t *testing.T) {
	nodes := servers(t, 5)
	before := open(t, nodes)
	if err := before.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	held, err := before.TryAcquire(t.Context(), "held")
	if err != nil {
		t.Fatal(err)
	}

	var restarts sync.WaitGroup
	for _, s := range nodes {
		s.Kill()
	}
	for _, s := range nodes {
		restarts.Go(func() {
			if err := s.Restart(); err != nil {
				t.Error(err)
			}
		})
	}
	restarts.Wait()

	after := open(t, nodes)
	if err := after.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := after.TryAcquire(t.Context(), "held"); !errors.Is(err, quorum.ErrNotAcquired) {
		t.Errorf("%v, want a lock that is held still", err)
	}
	next, err := after.TryAcquire(t.Context(), "another")
	if err != nil {
		t.Fatalf("%v, want nodes that vote at once", err)
	}
	for _, lease := range []*quorum.Lease{held, next} {
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, s := range nodes {
		client := redis.NewClient(&redis.Options{Addr: s.Addr(), Password: password})
		record, err := client.HGetAll(t.Context(), script.RecordKey).Result()
		if err != nil || record["durable"] != string(script.Durable) || record["until"] != "0" {
			t.Errorf("the record is %v, %v: want one without a quarantine", record, err)
		}
		policy, err := client.ConfigGet(t.Context(), "maxmemory-policy").Result()
		if err != nil || policy["maxmemory-policy"] != "noeviction" {
			t.Errorf("%v, %v: want nodes that evict nothing", policy, err)
		}
		_ = client.Close()
	}
}

// The probes log in, and fail where the node would.
func TestProbesTellANodeThatWorks(t *testing.T) {
	server := servers(t, 1)[0]
	nodes := of[apps.StatefulSet](t, load(t), "StatefulSet", name)
	container := nodes.Spec.Template.Spec.Containers[0]
	_, port, _ := strings.Cut(server.Addr(), ":")
	for title, probe := range map[string]*core.Probe{
		"startup": container.StartupProbe, "readiness": container.ReadinessProbe, "liveness": container.LivenessProbe,
	} {
		if probe == nil || probe.Exec == nil || probe.Exec.Command[0] != "redis-cli" {
			t.Fatalf("%s: %+v", title, probe)
		}
		run := func(secret string) error {
			env := environment(t, container, map[string]string{"password": secret})
			c := exec.CommandContext(t.Context(), "redis-cli", append([]string{"-p", port}, probe.Exec.Command[1:]...)...)
			for variable, value := range env {
				c.Env = append(c.Env, variable+"="+value)
			}
			return c.Run()
		}
		if err := run(password); err != nil {
			t.Errorf("%s: %v of a node that works", title, err)
		}
		if run("another") == nil {
			t.Errorf("%s: a node that lets nobody in is well", title)
		}
	}
	server.Kill()
	if exec.CommandContext(t.Context(), "redis-cli", append([]string{"-p", port}, container.LivenessProbe.Exec.Command[1:]...)...).Run() == nil {
		t.Error("a node that is dead is well")
	}
}

// What docs/deploy.md tells those without Kubernetes to write is a part of the ConfigMap.
func TestDocumentedSettingsAreTheseOnes(t *testing.T) {
	document, err := os.ReadFile("../deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(document), "```conf\n")
	block, _, ends := strings.Cut(block, "```\n")
	if !found || !ends || block == "" {
		t.Fatal("docs/deploy.md shows no settings")
	}
	conf := of[core.ConfigMap](t, load(t), "ConfigMap", name).Data["redis.conf"]
	for line := range strings.Lines(block) {
		if !strings.Contains("\n"+conf, "\n"+line) {
			t.Errorf("docs/deploy.md shows %q, which the ConfigMap does not have", line)
		}
	}
}
