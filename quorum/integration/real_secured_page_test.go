package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/quorumtest"
	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/quorum"
)

// What docs/secured.md tells people to type works: its certificates, its user, its settings.
func TestRealSecuredPageIsTrue(t *testing.T) {
	text, err := os.ReadFile("../../docs/secured.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{} // by what they begin with
	for _, m := range regexp.MustCompile("(?s)```([a-z]*)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		first, _, _ := strings.Cut(m[2], " ")
		blocks[m[1]+" "+first] = m[2]
	}
	commands, settings, users := blocks["sh ec=\"-newkey"], blocks[" port"], blocks[" user"]
	if commands == "" || settings == "" || users == "" {
		t.Fatalf("the page has other blocks: %q", blocks)
	}

	_, rules, _ := strings.Cut(users, ">change-me")
	if got := slices.DeleteFunc(strings.Fields(rules), func(rule string) bool { return rule == "-@all" }); !slices.Equal(got, rulesFor(t, securedPrefix)) {
		t.Errorf("the page has the rules %q, want %q", got, rulesFor(t, securedPrefix))
	}

	if version, err := exec.Command("openssl", "version").Output(); err != nil || !strings.HasPrefix(string(version), "OpenSSL 3") {
		fail := t.Skipf
		if os.Getenv("REDQUORUM_REQUIRE_REDIS") == "1" { // .ci/system installs it
			fail = t.Fatalf
		}
		fail("needs OpenSSL 3: %s, %v", version, err)
	}
	redisserver.Require(t)
	dir := t.TempDir()
	issue := exec.Command("sh", "-e", "-c", commands)
	issue.Dir = dir
	if out, err := issue.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(file("users.acl"), []byte(strings.ReplaceAll(users, "change-me", secret)), 0o600); err != nil {
		t.Fatal(err)
	}
	// The settings are the page's, but for the ports: the test's own are free.
	var args []string
	for line := range strings.Lines(strings.ReplaceAll(settings, "/etc/redis", dir)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "port" && name != "tls-port" {
			args = append(args, "--"+name, value)
		}
	}
	m := on(t, &quorumtest.Journal{})
	var urls []string
	for range 3 {
		s := redisserver.StartTLS(t, redisserver.TLS{Cert: file("node1.crt"), Key: file("node1.key"), CA: file("ca.crt")}, args...)
		m.Servers = append(m.Servers, s)
		urls = append(urls, "rediss://shop:"+secret+"@"+s.SecureAddr()+"?cacert="+file("ca.crt")+"&cert="+file("shop.crt")+"&key="+file("shop.key"))
	}
	c := m.ClientAt(quorum.Config{Prefix: securedPrefix}, urls)
	m.reaches(c)
	mustRelease(t, mustGet(t, c, "stock", quorum.WithWaitTime(10*time.Second)))

	for i, url := range urls {
		urls[i] = strings.Replace(url, "shop:"+secret+"@", "", 1)
	}
	m.wantRefused("Ping of the default user", m.ClientAt(quorum.Config{Prefix: securedPrefix}, urls).Ping, "NOAUTH")
}
