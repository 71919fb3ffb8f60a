package direct

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// New returns a client with these options, of which it takes a copy. It has no handshake beyond what the protocol needs,
// and its requests end with their context's deadline.
func New(opts *redis.Options) *redis.Client {
	o := *opts
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ContextTimeoutEnabled = true
	dial := o.Dialer
	if dial == nil {
		dial = redis.NewDialer(opts)
	}
	o.Dialer = func(_ context.Context, network, addr string) (net.Conn, error) {
		return newConn(func(ctx context.Context) (net.Conn, error) { return dial(ctx, network, addr) }), nil
	}
	return redis.NewClient(&o)
}
