package authority_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/authority"
)

func TestCertificatesAreGoodForThisMachineAndNobodyElse(t *testing.T) {
	ours, theirs := authority.New(t), authority.New(t)
	pair := ours.Issue(t, "server")
	check := func(ca *authority.Authority, p authority.Pair, name string, use x509.ExtKeyUsage) error {
		_, err := p.TLS.Leaf.Verify(x509.VerifyOptions{Roots: ca.Pool, DNSName: name, KeyUsages: []x509.ExtKeyUsage{use}})
		return err
	}
	for _, name := range []string{"127.0.0.1", "localhost"} {
		for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
			if err := check(ours, pair, name, use); err != nil {
				t.Errorf("%s, %v: %v", name, use, err)
			}
		}
	}
	if check(ours, pair, "10.0.0.1", x509.ExtKeyUsageServerAuth) == nil {
		t.Error("good for another machine")
	}
	if check(theirs, pair, "localhost", x509.ExtKeyUsageServerAuth) == nil {
		t.Error("trusted by somebody else")
	}
	var expired x509.CertificateInvalidError
	if err := check(ours, ours.IssueExpired(t, "old"), "localhost", x509.ExtKeyUsageServerAuth); !errors.As(err, &expired) || expired.Reason != x509.Expired {
		t.Errorf("one that has expired: %v", err)
	}
	loaded, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil || !loaded.Leaf.Equal(pair.TLS.Leaf) || time.Until(loaded.Leaf.NotAfter) < 30*time.Minute {
		t.Errorf("the files: %v", err)
	}
}
