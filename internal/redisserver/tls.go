package redisserver

import "strconv"

// TLS is how a server proves who it is, and what it wants of its clients. The
// files are PEM.
type TLS struct {
	// Cert and Key are the server's.
	Cert, Key string
	// CA signs the certificates that clients have to show; "" asks for none.
	CA string
}

// SecureAddr is the host:port at which a server with TLS speaks it. It never
// changes.
func (s *Server) SecureAddr() string { return s.secure.Addr() }

// tlsArgs are the arguments that make the server speak TLS.
func (s *Server) tlsArgs() []string {
	if s.tls == nil {
		return nil
	}
	args := []string{
		"--tls-port", strconv.Itoa(s.secure.Number()),
		"--tls-cert-file", s.tls.Cert,
		"--tls-key-file", s.tls.Key,
	}
	if s.tls.CA == "" {
		return append(args, "--tls-auth-clients", "no")
	}
	return append(args, "--tls-auth-clients", "yes", "--tls-ca-cert-file", s.tls.CA)
}
