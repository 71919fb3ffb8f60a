package demo

import (
	"fmt"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// Config is what can be set. There are no defaults here: the command line has them.
type Config struct {
	// Stock is the number of items, Processes that of worker processes, Workers that of workers in each.
	Stock, Processes, Workers int
	// TTL is the lock's. Each sale is paced to last three of it and a little more, so that there is time to lose nodes
	// at one third and to have one come back a TTL later.
	TTL time.Duration
	// Timeout bounds the whole.
	Timeout time.Duration
	// Nodes are URLs of real servers; none means embedded nodes.
	Nodes []string
	// Worker is the command that starts a worker process.
	Worker []string
}

const (
	saleTTLs = 3 // that a sale lasts at least
	leastTTL = 8 // that the timeout has to leave: two sales, and the end
)

// Validate reports the first value that breaks a rule.
func (c Config) Validate() error {
	if least := leastTTL * c.TTL; c.Timeout < least {
		return fmt.Errorf("timeout %v is too short for TTL %v: want at least %d times the TTL, %v",
			c.Timeout, c.TTL, leastTTL, least)
	}
	if err := c.lock().Validate(); err != nil {
		return err
	}
	if len(c.Nodes) == 0 {
		return nil
	}
	// Opening does no I/O, and knows every rule for addresses.
	locks, err := quorum.Open(c.lock(), c.Nodes...)
	if err != nil {
		return err
	}
	return locks.Close()
}

// lock is the configuration of the lock.
func (c Config) lock() quorum.Config { return quorum.Config{TTL: c.TTL} }

// think is how long a worker thinks on average.
func (c Config) think() time.Duration {
	return max(saleTTLs*c.TTL/time.Duration(c.Stock), time.Millisecond)
}
