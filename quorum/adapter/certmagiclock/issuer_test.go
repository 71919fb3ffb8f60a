package certmagiclock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
)

// issuer is a CA in the process: before it issues it does what a test wants.
type issuer struct {
	key    *ecdsa.PrivateKey
	before func(ctx context.Context) error
	issued int
}

func newIssuer(t *testing.T, before func(ctx context.Context) error) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return &issuer{key: key, before: before}
}

func (i *issuer) IssuerKey() string { return "test" }

func (i *issuer) Issue(ctx context.Context, request *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if err := i.before(ctx); err != nil {
		return nil, err
	}
	i.issued++
	root := &x509.Certificate{Subject: pkix.Name{CommonName: "test"}}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		DNSNames:     request.DNSNames,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(90 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, root, request.PublicKey, i.key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// serve returns the configuration of a server.
func (cl *cluster) serve(ca *issuer) *certmagic.Config {
	cl.t.Helper()
	var cfg *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return cfg, nil },
		Logger:           zap.NewNop(),
	})
	cl.t.Cleanup(cache.Stop)
	cfg = certmagic.New(cache, certmagic.Config{Storage: cl.storage(), Issuers: []certmagic.Issuer{ca}, Logger: zap.NewNop()})
	return cfg
}

func TestCertificateIsObtainedOnceByServersThatWantItAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		ca := newIssuer(t, func(context.Context) error { time.Sleep(10 * ttl); return nil })
		errs := make(chan error)
		for range 3 {
			cfg := cl.serve(ca)
			go func() { errs <- cfg.ObtainCertSync(t.Context(), "example.test") }()
		}
		for range 3 {
			must(t, <-errs)
		}
		if ca.issued != 1 {
			t.Errorf("%d certificates were issued", ca.issued)
		}
	})
}

// A server whose lease was lost does not ask the CA once more while another is at it: before its next attempt, a minute
// later, it takes the lock again, and then finds the certificate.
func TestAttemptAfterALossWaitsForWhoeverHasTheLock(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		second := newIssuer(t, func(context.Context) error { time.Sleep(10 * time.Minute); return nil })
		others := cl.serve(second)
		errs := make(chan error)
		attempts := 0
		first := newIssuer(t, func(context.Context) error {
			if attempts++; attempts > 1 {
				return nil
			}
			cl.steal()
			go func() { errs <- others.ObtainCertAsync(t.Context(), "example.test") }()
			time.Sleep(time.Second)
			return errors.New("try again later")
		})
		must(t, cl.serve(first).ObtainCertAsync(t.Context(), "example.test"))
		must(t, <-errs)
		if first.issued+second.issued != 1 || attempts != 1 {
			t.Errorf("%d certificates, %d attempts of the server that had lost its lease", first.issued+second.issued, attempts)
		}
	})
}
