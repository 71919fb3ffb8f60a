package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/redquorum/redquorum/node"
)

// answers judges whether a node can be talked to, and how long that takes.
func (j *judgement) answers(f *facts) {
	const check = "reachability"
	if f.err != nil {
		found := word(f.err)
		if errors.Is(f.err, node.ErrTimeout) {
			found = "no answer within " + max(patience, j.clients.NodeTimeout).String()
		}
		means, fix := j.unreachable(f.err)
		if f.plain {
			found = "no TLS handshake within " + max(patience, j.clients.NodeTimeout).String() + ", and an answer without TLS"
			means = "The server speaks no TLS at this port: it takes the handshake for a command, and waits for the rest."
			fix = "The server's tls-port in the address; or tls-port in redis.conf (docs/secured.md); or redis://, if nobody can listen on the way."
		}
		j.find(f, Finding{Severity: Problem, Check: check, Found: found, Means: means, Fix: fix})
		return
	}
	fastest, slowest, timeout := f.trips[0], f.trips[len(f.trips)-1], j.clients.NodeTimeout
	finding := Finding{
		Check: check,
		Found: "answers in " + rough(f.median()).String() + " (" + rough(fastest).String() + " to " + rough(slowest).String() + ")",
		Fix: "A longer node timeout (with a TTL that is longer by as much three times over), a nearer server, or a look at what keeps this " +
			"one busy: SLOWLOG GET, LATENCY DOCTOR.",
	}
	switch {
	case f.median() >= timeout:
		finding.Severity = Problem
		finding.Means = "That is longer than clients wait (a node timeout of " + timeout.String() + "): to them this node is down."
	case slowest >= timeout/2:
		finding.Severity = Warning
		finding.Means = "Clients wait no longer than " + timeout.String() + ", so this node is one that is now and then missing."
	default:
		finding.Fix = ""
	}
	j.find(f, finding)
}

// median is the middle of the round trips.
func (f *facts) median() time.Duration { return f.trips[len(f.trips)/2] }

// word is what is wrong, without the node's name, which stands beside it.
func word(err error) string {
	var e *node.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "node: "), "redquorum: ")
}

// unreachable tells what it means that a node cannot be talked to.
func (j *judgement) unreachable(err error) (means, fix string) {
	var noHost *net.DNSError
	var badCertificate *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	text := word(err)
	switch {
	case errors.Is(err, node.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return "Nobody answers: the server stands still, or is cut off by a firewall, or its machine is down.",
			"Look whether the server runs and redis-cli reaches it from here. One that hangs is better killed than left: its clients then " +
				"know at once."
	case errors.Is(err, syscall.ECONNREFUSED):
		return "The machine is there, and no server listens at this port.",
			"Start the server; look at its port, and whether it listens on this address (bind)."
	case errors.As(err, &noHost):
		return "The name of the server is not known here.", "Look at the address, and at this machine's name server."
	case errors.As(err, &badCertificate), errors.As(err, &unknown):
		return "The server's certificate is not one that this machine trusts for that name.",
			"A certificate for the name in the address, by an authority that this machine trusts."
	case strings.Contains(text, "remote error: tls: ") && strings.Contains(text, "certificate"):
		return "The server does not accept the certificate that it was shown, or was shown none.",
			"cert= and key= in the address: a certificate that is valid, by the authority that the server trusts (docs/secured.md)."
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "It hung up before it answered.",
			"It may want TLS (rediss://), have as many clients as it takes (maxclients), or be no Redis at all."
	case strings.Contains(text, "AUTH"), strings.Contains(text, "WRONGPASS"):
		return "The server wants other credentials than it was given.", "user:password in the address (special characters percent-encoded), and the user's state in ACL LIST."
	case strings.Contains(text, "NOPERM"):
		return "The user may not do what every lock begins with.", j.grant(err)
	case strings.Contains(text, "LOADING"):
		return "The server reads its data after a start. It does not vote until it is done.", "Wait."
	}
	return "Locks have one node less until this is mended.", "Look at the server's log, and at the way from here to there."
}
