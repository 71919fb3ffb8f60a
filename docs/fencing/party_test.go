package fencing

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"
)

// patience is far more than anything takes; only a test that fails spends it.
const patience = 30 * time.Second

// script is a transaction in steps, and how it is run again from its beginning.
type script struct {
	steps []func(ctx context.Context, p *party) error // between BEGIN and COMMIT
	again func(ctx context.Context, db *database, token int64) error
}

// moves are the steps with BEGIN and COMMIT.
func (s script) moves() int { return len(s.steps) + 2 }

// party is a holder that carries out its script move by move, when it is told to. Its database has two of them.
type party struct {
	token int64
	rival *party
	db    *database
	conn  *sql.Conn
	pid   int // of the server's process behind the connection
	tx    *sql.Tx

	granted chan struct{} // one for each move that it may make
	events  chan event    // what became of them
	ended   chan struct{} // closed when its transaction is over, one way or the other
	err     error         // why that was before the script's end; to be read once it has ended

	pending int  // moves that were granted and not heard of
	waiting bool // it said that it waits for its rival
}

type event int

const (
	moved event = iota
	waits
)

func newParty(ctx context.Context, t *testing.T, db *database, token int64, moves int) *party {
	t.Helper()
	p := &party{
		token: token, db: db,
		granted: make(chan struct{}, moves), events: make(chan event, moves+1), ended: make(chan struct{}),
	}
	var err error
	p.conn, err = db.impatient.Conn(ctx)
	ok(t, err)
	if db.blocked != nil {
		ok(t, p.conn.QueryRowContext(ctx, `SELECT pg_backend_pid()`).Scan(&p.pid))
	}
	return p
}

// play makes a move for every one that is granted. After a failure it makes the rest of them by doing nothing.
func (p *party) play(ctx context.Context, s script) error {
	for n := range s.moves() {
		select {
		case <-p.granted:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), p.conn.Close())
		}
		if p.err == nil {
			p.err = p.move(ctx, s, n)
			if p.err != nil && p.tx != nil {
				p.err = errors.Join(p.err, p.tx.Rollback())
			}
			if p.err != nil || n == s.moves()-1 {
				close(p.ended)
			}
		}
		p.events <- moved
	}
	return p.conn.Close()
}

func (p *party) move(ctx context.Context, s script, n int) error {
	switch n {
	case 0:
		return p.begin(ctx)
	case s.moves() - 1:
		return p.tx.Commit()
	default:
		return s.steps[n-1](ctx, p)
	}
}

// begin waits for the rival itself where BEGIN is what waits: from outside a connection that waits inside SQLite looks
// like one that is slow.
func (p *party) begin(ctx context.Context) (err error) {
	if p.tx, err = p.conn.BeginTx(ctx, nil); !busy(err) {
		return err
	}
	p.events <- waits
	select {
	case <-p.rival.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.tx, err = p.conn.BeginTx(ctx, nil)
	return err
}

// grant lets the party make one more move. It returns when the party has made all that it may, or waits for its rival.
func (p *party) grant(ctx context.Context, t *testing.T) {
	t.Helper()
	p.granted <- struct{}{}
	p.pending++
	for p.pending > 0 {
		if !p.rival.over() {
			if p.waiting {
				return
			}
			if p.db.blocked != nil && len(p.events) == 0 {
				if p.db.blocked(t, p.pid) {
					return
				}
				ok(t, ctx.Err())
				continue
			}
		}
		select {
		case e := <-p.events:
			if p.waiting = e == waits; !p.waiting {
				p.pending--
			}
		case <-ctx.Done():
			t.Fatalf("the holder of %d stands still", p.token)
		}
	}
}

func (p *party) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
