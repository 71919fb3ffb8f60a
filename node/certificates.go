package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/redis/go-redis/v9"
)

// Certificates of one's own, for those who have nothing but a URL: a command line, a configuration file. The options are
// called as in redis-cli.
const (
	cacertOption = "cacert" // PEM file: who signs the servers' certificates; instead of the system's
	certOption   = "cert"   // PEM file: the client's certificate
	keyOption    = "key"    // PEM file: and its private key
)

// certificates are the files that a URL names; "" for none.
type certificates struct{ cacert, cert, key string }

// takeCertificates returns the files that a URL names, and the URL without them, as go-redis knows it.
func takeCertificates(u *url.URL) (certificates, *url.URL, error) {
	options := u.Query()
	c := certificates{options.Get(cacertOption), options.Get(certOption), options.Get(keyOption)}
	for _, option := range []string{cacertOption, certOption, keyOption} {
		switch {
		case !options.Has(option):
			continue
		case u.Scheme != "rediss":
			return c, nil, fmt.Errorf("has the option %s, which is for TLS: want rediss://", option)
		case len(options[option]) > 1:
			return c, nil, fmt.Errorf("has the option %s twice", option)
		case options.Get(option) == "":
			return c, nil, fmt.Errorf("has an empty option %s: want a file", option)
		}
		options.Del(option)
	}
	if c == (certificates{}) {
		return c, u, nil
	}
	if (c.cert == "") != (c.key == "") {
		return c, nil, fmt.Errorf("has one of the options %s and %s: want both", certOption, keyOption)
	}
	rest := *u
	rest.RawQuery = options.Encode()
	return c, &rest, nil
}

// apply puts the certificates into the options of a client.
func (c certificates) apply(opts *redis.Options) error {
	if c.cacert != "" {
		text, err := os.ReadFile(c.cacert)
		if err != nil {
			return fmt.Errorf("%s: %w", cacertOption, err)
		}
		opts.TLSConfig.RootCAs = x509.NewCertPool()
		if !opts.TLSConfig.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s: %s: want certificates in PEM", cacertOption, c.cacert)
		}
	}
	if c.cert == "" {
		return nil
	}
	// Read for every connection: what is renewed in the files while the process runs counts from then on.
	read := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(c.cert, c.key)
		var missing *os.PathError
		switch {
		case errors.As(err, &missing):
			return nil, fmt.Errorf("%s and %s: %w", certOption, keyOption, missing)
		case err != nil:
			return nil, fmt.Errorf("%s and %s: %s and %s: %w", certOption, keyOption, c.cert, c.key, err)
		}
		return &pair, nil
	}
	opts.TLSConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return read() }
	_, err := read()
	return err
}
