package redisserver

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/authority"
)

// greet shakes hands and returns what a server answers to PING.
func greet(s *Server, config *tls.Config) (string, error) {
	c, err := tls.Dial("tcp4", s.SecureAddr(), config)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return "", err
	}
	reply := make([]byte, 64)
	n, err := c.Read(reply)
	return string(reply[:n]), err
}

func TestServerWithTLSSpeaksItAtAPortOfItsOwn(t *testing.T) {
	Require(t)
	ca := authority.New(t)
	own, client := ca.Issue(t, "server"), ca.Issue(t, "client")
	known := &tls.Config{RootCAs: ca.Pool, Certificates: []tls.Certificate{client.TLS}}
	unknown := &tls.Config{RootCAs: ca.Pool}
	for title, c := range map[string]struct {
		how  TLS
		open bool
	}{
		"for those it knows": {TLS{Cert: own.Cert, Key: own.Key, CA: ca.File}, false},
		"for everybody":      {TLS{Cert: own.Cert, Key: own.Key}, true},
	} {
		t.Run(title, func(t *testing.T) {
			s := StartTLS(t, c.how)
			addr := s.SecureAddr()
			for range 2 {
				if got, err := greet(s, known); err != nil || got != "+PONG\r\n" {
					t.Errorf("answered %q, %v", got, err)
				}
				if got, err := greet(s, unknown); (err == nil) != c.open {
					t.Errorf("without a certificate: answered %q, %v", got, err)
				}
				set(t, s, "at the other port")
				if err := s.Restart(); err != nil {
					t.Fatal(err)
				}
				if s.SecureAddr() != addr {
					t.Errorf("restarted from %s to %s", addr, s.SecureAddr())
				}
			}
		})
	}
}
