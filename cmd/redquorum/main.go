// Command redquorum shows locks across independent Redis masters at work. See "redquorum --help".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
)

func main() {
	redis.SetLogger(silence{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends the process the hard way
	os.Exit(execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// silence is where go-redis' own words go: what becomes of a connection the nodes' errors say, and who reads the output of a
// command wants nothing else in it.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
