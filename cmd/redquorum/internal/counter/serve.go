package counter

import (
	"io"
	"net/rpc"
	"net/rpc/jsonrpc"
	"time"

	"github.com/redquorum/redquorum/cmd/redquorum/internal/stock"
)

// Job is what a worker process is there for.
type Job struct {
	// Process is the number of the process, Workers how many workers it has.
	Process, Workers int
	// Think is how long a worker thinks between looking and selling, on average.
	Think time.Duration
	// Lock is the lock's name; empty if there is none.
	Lock string
	// Nodes are the URLs of the lock's nodes, TTL is its TTL.
	Nodes []string
	TTL   time.Duration
}

// Serve answers a worker process until the line to it ends, and then ends its visits.
func Serve(line io.ReadWriteCloser, s *stock.Stock, job Job) {
	server := rpc.NewServer()
	if err := server.RegisterName("Counter", &desk{s, job}); err != nil {
		panic(err) // the methods below are not what net/rpc wants
	}
	server.ServeCodec(jsonrpc.NewServerCodec(line))
	s.Gone(job.Process)
}

// desk is the side of the stock, for one process. Its methods are what net/rpc calls.
type desk struct {
	stock *stock.Stock
	job   Job
}

// Step is what a worker asks for.
type Step struct {
	Worker int
	Token  int64 // 0: none
	Item   int
}

// Reply is what it gets.
type Reply struct {
	Quantity int
	Refused  bool
}

// Job hands out the job.
func (d *desk) Job(_ struct{}, job *Job) error {
	*job = d.job
	return nil
}

// Look is [stock.Stock.Look].
func (d *desk) Look(s Step, r *Reply) error {
	quantity, ok := d.stock.Look(d.visitor(s), s.Token)
	*r = Reply{Quantity: quantity, Refused: !ok}
	return nil
}

// Sell is [stock.Stock.Sell].
func (d *desk) Sell(s Step, r *Reply) error {
	*r = Reply{Refused: !d.stock.Sell(d.visitor(s), s.Token, s.Item)}
	return nil
}

// Leave is [stock.Stock.Leave].
func (d *desk) Leave(s Step, _ *Reply) error {
	d.stock.Leave(d.visitor(s))
	return nil
}

func (d *desk) visitor(s Step) stock.Visitor {
	return stock.Visitor{Process: d.job.Process, Worker: s.Worker}
}
