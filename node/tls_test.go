package node_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// authority issues certificates for 127.0.0.1 and localhost.
type authority struct {
	pool *x509.CertPool
	cert tls.Certificate
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redquorum test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return authority{pool, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}
}

func TestTLS(t *testing.T) {
	ca := newAuthority(t)
	var asked atomic.Value // the name that the client asked for
	m := miniredis.NewMiniRedis()
	if err := m.StartTLS(&tls.Config{
		Certificates: []tls.Certificate{ca.cert},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			asked.Store(hello.ServerName)
			return nil, nil
		},
	}); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	local := "localhost:" + m.Port()

	for title, config := range map[string]*tls.Config{
		"its certificate is checked":     {RootCAs: ca.pool},
		"its certificate is not checked": {InsecureSkipVerify: true},
		"by another name":                {RootCAs: ca.pool, ServerName: "localhost"},
	} {
		t.Run(title, func(t *testing.T) {
			asked.Store("")
			given := config.Clone()
			n := with(t, &redis.Options{Addr: local, TLSConfig: config})
			must(t, n, lock(title), script.Granted)
			must(t, n, unlock(title), script.Released)
			if asked.Load() != "localhost" {
				t.Errorf("asked for %q, want the server's name", asked.Load())
			}
			if config.ServerName != given.ServerName {
				t.Error("the caller's TLS configuration was changed")
			}
		})
	}
	t.Run("a certificate of somebody else's", func(t *testing.T) {
		_, err := ask(open(t, "rediss://"+local), lock("a"), patience)
		wantError(t, err, verdict{})
		var unknown x509.UnknownAuthorityError
		if !errors.As(err, &unknown) {
			t.Errorf("got %v, want an unknown authority", err)
		}
	})
	t.Run("a server without TLS", func(t *testing.T) {
		f := serve(t, on("", ""))
		_, err := ask(open(t, "rediss://"+f.Addr().String()), lock("a"), budget)
		if err == nil || node.Sent(err) {
			t.Errorf("got %v, want an error before anything was sent", err)
		}
	})
}

func TestTLSOfARealServer(t *testing.T) {
	ca := newAuthority(t)
	dir := t.TempDir()
	der, err := x509.MarshalECPrivateKey(ca.cert.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: ca.cert.Certificate[0]},
		keyFile:  {Type: "EC PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	redisserver.Require(t)
	plain := redisserver.Start(t)
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(free.Addr().(*net.TCPAddr).Port)
	_ = free.Close()
	for setting, value := range map[string]string{
		"tls-cert-file": certFile, "tls-key-file": keyFile, "tls-ca-cert-file": certFile, "tls-auth-clients": "no",
	} {
		if err := plain.Client().ConfigSet(t.Context(), setting, value).Err(); err != nil {
			t.Skipf("this server was built without TLS: %v", err)
		}
	}
	if err := plain.Client().ConfigSet(t.Context(), "tls-port", port).Err(); err != nil {
		t.Fatal(err)
	}
	n := with(t, &redis.Options{Addr: "127.0.0.1:" + port, TLSConfig: &tls.Config{RootCAs: ca.pool}})
	for range 10 {
		must(t, n, lock("a"), script.Granted)
		must(t, n, unlock("a"), script.Released)
	}
	if err := plain.Pause(); err != nil {
		t.Fatal(err)
	}
	endsInTime(t, n, verdict{timeout: true, sent: true})
	endsInTime(t, n, verdict{timeout: true})
}
