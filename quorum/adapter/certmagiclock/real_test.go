package certmagiclock_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/mholt/acmez/v3/acme"
	"go.uber.org/zap"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/quorum/adapter/certmagiclock"
	"github.com/redquorum/redquorum/script"
)

// The other processes are this test binary, executed again: TestMain runs server instead of the tests where the first
// variable names a CA.
const (
	caVariable     = "REDQUORUM_TEST_CA"
	rootVariable   = "REDQUORUM_TEST_CA_ROOT"
	folderVariable = "REDQUORUM_TEST_FOLDER"
	nodeVariable   = "REDQUORUM_TEST_NODES"
)

const (
	servers     = 3
	domain      = "example.test"
	realTimeout = 500 * time.Millisecond
	patience    = time.Minute
)

// server is one that wants a certificate, and tells the serial number of the one it got.
func server(ca string) int {
	serial, err := obtain(ca)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(serial)
	return 0
}

func obtain(ca string) (string, error) {
	locks, err := quorum.Open(quorum.Config{NodeTimeout: realTimeout}, strings.Split(os.Getenv(nodeVariable), ",")...)
	if err != nil {
		return "", err
	}
	defer locks.Close()
	files := &certmagic.FileStorage{Path: os.Getenv(folderVariable)}
	storage, err := certmagiclock.New(files, locks, certmagiclock.Config{})
	if err != nil {
		return "", err
	}
	root, err := os.ReadFile(os.Getenv(rootVariable))
	if err != nil {
		return "", err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(root) {
		return "", errors.New("the CA's own certificate is none")
	}
	var cfg *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return cfg, nil },
		Logger:           zap.NewNop(),
	})
	defer cache.Stop()
	cfg = certmagic.New(cache, certmagic.Config{Storage: storage, Logger: zap.NewNop()})
	cfg.Issuers = []certmagic.Issuer{certmagic.NewACMEIssuer(cfg, certmagic.ACMEIssuer{
		CA: ca, TrustedRoots: roots, Email: "admin@example.test", Agreed: true, DNS01Solver: solver{}, Logger: zap.NewNop(),
	})}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := cfg.ObtainCertAsync(ctx, domain); err != nil {
		return "", err
	}
	cert, err := cfg.CacheManagedCertificate(ctx, domain)
	if err != nil {
		return "", err
	}
	return cert.Leaf.SerialNumber.String(), nil
}

// solver solves nothing: the test CA believes all that is asked of it.
type solver struct{}

func (solver) Present(context.Context, acme.Challenge) error { return nil }
func (solver) CleanUp(context.Context, acme.Challenge) error { return nil }

// authority is an ACME CA, Let's Encrypt's own for tests, that counts what is asked of it.
type authority struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int // by the first part of the path
}

// startAuthority starts a CA that gives no order before it may.
func startAuthority(t *testing.T, mayOrder <-chan struct{}) *authority {
	t.Helper()
	t.Setenv("PEBBLE_VA_ALWAYS_VALID", "1")
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	t.Setenv("PEBBLE_WFE_NONCEREJECT", "0") // or it would have some requests repeated
	quiet := log.New(io.Discard, "", 0)
	store := db.NewMemoryStore()
	signer := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {}})
	front := wfe.New(quiet, store, va.New(quiet, 0, 0, false, "", store), signer, nil, false, false, 1, 1)
	acme := front.Handler()
	a := &authority{asked: map[string]int{}}
	a.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		what := strings.Split(r.URL.Path, "/")[1]
		a.mu.Lock()
		a.asked[what]++
		a.mu.Unlock()
		if what == "order-plz" {
			<-mayOrder
		}
		acme.ServeHTTP(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

// count is how often something was asked.
func (a *authority) count(what string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[what]
}

// Three servers with one folder want the certificate of one domain. All wait for one lock, and the first of them obtains
// it while the others wait.
func TestRealCertificateIsObtainedOnceByThreeProcesses(t *testing.T) {
	nodes := redisserver.StartN(t, 5)
	mayOrder := make(chan struct{})
	authority := startAuthority(t, mayOrder)
	folder := t.TempDir()
	root := folder + "/root.pem"
	must(t, os.WriteFile(root, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate().Raw}), 0o600))

	var outputs [servers]strings.Builder
	var processes [servers]*exec.Cmd
	for i := range processes {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), caVariable+"="+authority.URL+"/dir", rootVariable+"="+root,
			folderVariable+"="+folder, nodeVariable+"="+strings.Join(redisserver.URLs(nodes), ","))
		cmd.Stdout, cmd.Stderr = &outputs[i], os.Stderr
		must(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // has ended, if all went well
		processes[i] = cmd
	}
	channel := script.Channel(certmagiclock.DefaultPrefix + "issue_cert_" + domain)
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		waiting, err := nodes[0].Client().PubSubNumSub(t.Context(), channel).Result()
		must(t, err)
		if waiting[channel] == servers-1 && authority.count("order-plz") == 1 {
			break
		}
		if time.Now().After(deadline) {
			close(mayOrder)
			t.Fatalf("after %v %d servers wait for the lock, and %d orders were placed", patience, waiting[channel],
				authority.count("order-plz"))
		}
	}
	close(mayOrder)
	for i, cmd := range processes {
		must(t, cmd.Wait())
		if outputs[i].String() != outputs[0].String() || outputs[i].Len() < 2 {
			t.Errorf("certificates %q and %q", outputs[0].String(), outputs[i].String())
		}
	}
	for what, name := range map[string]string{"sign-me-up": "accounts", "order-plz": "orders", "finalize-order": "certificates"} {
		if n := authority.count(what); n != 1 {
			t.Errorf("%d %s, want 1: %v", n, name, authority.asked)
		}
	}
	var meta struct {
		SANs []string `json:"sans"`
	}
	stored, err := (&certmagic.FileStorage{Path: folder}).List(t.Context(), "certificates", true)
	must(t, err)
	for _, key := range stored {
		if strings.HasSuffix(key, ".json") {
			text, err := os.ReadFile(folder + "/" + key)
			must(t, err)
			must(t, json.Unmarshal(text, &meta))
		}
	}
	if len(meta.SANs) != 1 || meta.SANs[0] != domain {
		t.Errorf("the folder has %q: %+v", stored, meta)
	}
	if _, err := os.Stat(folder + "/locks"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder's own locks were used: %v", err)
	}
}
