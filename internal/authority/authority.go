package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority signs certificates.
type Authority struct {
	// Pool trusts it, and nobody else.
	Pool *x509.CertPool
	// File is its certificate.
	File string

	dir    string
	own    Pair
	serial int64
}

// A Pair is a certificate with its private key.
type Pair struct {
	// Cert and Key are files.
	Cert, Key string
	// TLS is both.
	TLS tls.Certificate
}

// validity is how long certificates are valid, before and after they are issued.
const validity = time.Hour

// New returns an authority that nobody knows yet.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{Pool: x509.NewCertPool(), dir: t.TempDir()}
	a.own = a.sign(t, "authority", time.Now().Add(validity))
	a.File = a.own.Cert
	a.Pool.AddCert(a.own.TLS.Leaf)
	return a
}

// Issue returns a certificate for servers at 127.0.0.1 and localhost, and for clients.
func (a *Authority) Issue(t testing.TB, name string) Pair {
	t.Helper()
	return a.sign(t, name, time.Now().Add(validity))
}

// IssueExpired returns one that was valid until a minute ago.
func (a *Authority) IssueExpired(t testing.TB, name string) Pair {
	t.Helper()
	return a.sign(t, name, time.Now().Add(-time.Minute))
}

// sign makes a certificate. The first is the authority's own.
func (a *Authority) sign(t testing.TB, name string, until time.Time) Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	a.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial),
		Subject:      pkix.Name{CommonName: "redquorum test: " + name},
		NotBefore:    time.Now().Add(-validity),
		NotAfter:     until,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	parent, signer := a.own.TLS.Leaf, a.own.TLS.PrivateKey
	if parent == nil {
		template.IsCA, template.BasicConstraintsValid = true, true
		template.KeyUsage |= x509.KeyUsageCertSign
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	must(t, err)
	leaf, err := x509.ParseCertificate(der)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return Pair{
		Cert: a.write(t, name+".crt", "CERTIFICATE", der),
		Key:  a.write(t, name+".key", "PRIVATE KEY", private),
		TLS:  tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf},
	}
}

// write writes a file, in place of one of the same name.
func (a *Authority) write(t testing.TB, name, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(a.dir, name)
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return file
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
