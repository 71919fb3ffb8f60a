package node

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

// Permanent tells whether err is one that waiting cannot cure: the node answers, and refuses the client's credentials,
// its permissions, its address (protected mode) or the commands themselves; or one of the two does not accept the other's
// certificate, or speaks no TLS.
func Permanent(err error) bool {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return strangers(err)
	}
	text := answer.Error()
	for _, class := range []string{"NOAUTH", "WRONGPASS", "NOPERM", "DENIED", "ERR unknown command", "ERR invalid password", "ERR AUTH"} {
		if strings.HasPrefix(text, class) {
			return true
		}
	}
	// A call inside a script was refused. Redis 7.2 says NOPERM somewhere, older ones have words of their own for it.
	for _, words := range []string{"NOPERM", "The user executing the script can't", "Unknown Redis command called"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// strangers tells whether two parties cannot agree on TLS. What is wrong with our certificate, the server tells by an alert, for
// whose number crypto/tls has no exported type. Alerts that are about something else may be of the moment.
func strangers(err error) bool {
	var theirs *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	if errors.As(err, &theirs) || errors.As(err, &plain) {
		return true
	}
	var alert *net.OpError
	if !errors.As(err, &alert) || alert.Op != "remote error" || alert.Err == nil {
		return false
	}
	for _, words := range []string{"certificate", "access denied", "handshake failure", "protocol version"} {
		if strings.Contains(alert.Err.Error(), words) {
			return true
		}
	}
	return false
}

// Redis says that a user may not do something, but hardly what. What it leaves unsaid, the client knows: which keys, which
// channels, which line of the script. So an operator can see which rule is missing (see script.ACL).

// complete adds to the answer to a script what it leaves unsaid.
func complete(err error, answer redis.Error, req *script.Prepared) error {
	if at := scriptLine.FindStringSubmatch(answer.Error()); at != nil {
		line, _ := strconv.Atoi(at[1])
		if call := req.Quote(line); call != "" {
			return fmt.Errorf("%w: %s", err, call)
		}
	}
	if unnamed(answer) {
		return fmt.Errorf("%w: %s", err, those(req.Keys()))
	}
	return err
}

// scriptLine is where a script was cut off, in the words of any version.
var scriptLine = regexp.MustCompile(`user_script: ?([0-9]+)`)

// unnamed tells whether an answer refuses a key or a channel and does not say which.
func unnamed(answer redis.Error) bool {
	text := answer.Error()
	if !strings.HasPrefix(text, "NOPERM") {
		return false
	}
	for _, words := range []string{"one of the keys", "one of the channels", "access a key", "access a channel"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// refusal is the error of a command that is no script: what it was about is named where the server does not.
func (n *Node) refusal(err error, about ...string) error {
	var answer redis.Error
	if errors.As(err, &answer) && unnamed(answer) {
		err = fmt.Errorf("%w: %s", err, those(about))
	}
	return n.wrap(err, way{}) // nothing that could take effect was sent
}

// those lists some names, of which there may be many.
func those(names []string) string {
	const most = 4
	if len(names) > most {
		return fmt.Sprintf("%q and %d more", names[:most], len(names)-most)
	}
	return fmt.Sprintf("%q", names)
}
