package counter

import (
	"errors"
	"io"
	"net/rpc"
	"net/rpc/jsonrpc"
)

// ErrRefused is a step whose token was lower than one the stock had seen.
var ErrRefused = errors.New("refused: a later holder was here")

// Client is the side of the workers. It is safe for concurrent use. Every call fails once the line has ended.
type Client struct{ rpc *rpc.Client }

// NewClient returns the client at the other end of a line that is served.
func NewClient(line io.ReadWriteCloser) *Client { return &Client{jsonrpc.NewClient(line)} }

// Job returns what this process is there for.
func (c *Client) Job() (Job, error) {
	var job Job
	err := c.rpc.Call("Counter.Job", struct{}{}, &job)
	return job, err
}

// Look returns how many items are left.
func (c *Client) Look(worker int, token int64) (int, error) {
	return c.step("Counter.Look", Step{Worker: worker, Token: token})
}

// Sell sells the item, and leaves one less than its number.
func (c *Client) Sell(worker int, token int64, item int) error {
	_, err := c.step("Counter.Sell", Step{Worker: worker, Token: token, Item: item})
	return err
}

// Leave leaves without selling.
func (c *Client) Leave(worker int) error {
	_, err := c.step("Counter.Leave", Step{Worker: worker})
	return err
}

// Close ends the line.
func (c *Client) Close() error { return c.rpc.Close() }

func (c *Client) step(method string, s Step) (int, error) {
	var r Reply
	if err := c.rpc.Call(method, s, &r); err != nil {
		return 0, err
	}
	if r.Refused {
		return 0, ErrRefused
	}
	return r.Quantity, nil
}
