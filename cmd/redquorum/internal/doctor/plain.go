package doctor

import (
	"context"
	"net"
	"net/url"
	"time"
)

// answersPlainly tells whether a server that should speak TLS answers without. It takes the beginning of a handshake for that of
// a command, and waits for the rest, so all that is seen of it otherwise is that it is silent. It is told no password.
func (e *examination) answersPlainly(ctx context.Context, address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "rediss" {
		return false
	}
	port := u.Port()
	if port == "" {
		port = "6379"
	}
	ctx, cancel := context.WithTimeout(ctx, e.patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })() // at once
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	answer := make([]byte, 1)
	_, err = conn.Read(answer)
	return err == nil && (answer[0] == '+' || answer[0] == '-') // PONG, or that it wants a password; no TLS record begins so
}
