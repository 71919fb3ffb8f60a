package node

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

// perScan is how many keys the server goes through for one request: for so long nobody else is served. It looks up the type of
// each, which takes some microseconds where there are millions.
const perScan = 200

// Scan finds the locks that somebody has on this node under names that match a pattern, a glob as Redis has it, and passes
// their names on, those of some hundred keys at a time, which may be none. It returns true when it has been through all
// keys of the database, and false when found wanted no more or ctx ended.
//
// What is locked all the while is found; what comes or goes meanwhile may be. A name may come twice. A lock is a hash whose
// only field has the shape of a holder ([script.IsHolder]). Keys that this client may not read are passed over.
//
// It changes nothing, and needs the permission to run SCAN (with TYPE, so Redis 6), HLEN and HKEYS. budget is what some
// hundred keys have; the whole takes as long as there are keys.
func (n *Node) Scan(ctx context.Context, pattern string, budget time.Duration, found func(names []string) bool) (all bool, err error) {
	if n.closed.Load() {
		return false, &Error{Node: n.name, Err: ErrClosed}
	}
	for cursor := uint64(0); ; {
		names, next, err := n.scan(ctx, cursor, pattern, budget)
		switch {
		case over(ctx):
			return false, nil
		case err != nil:
			return false, n.wrap(err, way{}) // nothing that could take effect was sent
		case !found(names):
			return false, nil
		case next == 0:
			return true, nil
		}
		cursor = next
	}
}

// over tells whether a context has ended, or does at this moment: a connection keeps to the same deadline, and may be the first
// to notice.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// scan looks at some of the keys.
func (n *Node) scan(ctx context.Context, cursor uint64, pattern string, budget time.Duration) (names []string, next uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	keys, next, err := n.client.ScanType(ctx, cursor, pattern, perScan, "hash").Result()
	if err != nil {
		return nil, 0, err
	}
	keys = slices.DeleteFunc(keys, script.Reserved)

	// Other people's hashes may have millions of fields, and values of megabytes: neither is asked for.
	keys, err = keep(ctx, n.client, keys, redis.Pipeliner.HLen, func(fields int64) bool { return fields == 1 })
	if err != nil {
		return nil, 0, err
	}
	names, err = keep(ctx, n.client, keys, redis.Pipeliner.HKeys, func(fields []string) bool {
		return len(fields) == 1 && script.IsHolder(fields[0])
	})
	return names, next, err
}

// keep asks the same about all keys, and returns those about which the answer is right.
func keep[C interface {
	redis.Cmder
	Result() (V, error)
}, V any](ctx context.Context, client *redis.Client, keys []string, ask func(redis.Pipeliner, context.Context, string) C, right func(V) bool) ([]string, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	pipe := client.Pipeline()
	answers := make([]C, len(keys))
	for i, key := range keys {
		answers[i] = ask(pipe, ctx, key)
	}
	_, _ = pipe.Exec(ctx) // each has its own error
	var are []string
	for i, answer := range answers {
		switch v, err := answer.Result(); {
		case err == nil && right(v):
			are = append(are, keys[i])
		case err != nil && !elses(err):
			return nil, err
		}
	}
	return are, nil
}

// elses tells whether an error says that a key is somebody else's: it has become one of another type since it was listed, or
// the client may not access it. (Up to version 7.0 Redis says "to access one of the keys", later "to access a key".)
func elses(err error) bool {
	return redis.HasErrorPrefix(err, "WRONGTYPE") ||
		redis.HasErrorPrefix(err, "NOPERM") && strings.Contains(err.Error(), "access")
}
