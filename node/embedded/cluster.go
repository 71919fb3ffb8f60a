package embedded

import "fmt"

// Cluster is a set of independent nodes. Its methods may be called from several
// goroutines at once, also for the same node.
type Cluster struct {
	instances []*instance
}

// Start starts n empty nodes, n at least 1. Close ends them.
func Start(n int) (*Cluster, error) {
	if n < 1 {
		return nil, fmt.Errorf("embedded: Start(%d): a cluster has at least 1 node", n)
	}
	c := &Cluster{}
	for range n {
		in, err := launch()
		if err != nil {
			c.Close()
			return nil, err
		}
		c.instances = append(c.instances, in)
	}
	return c, nil
}

// URLs are the nodes' addresses, redis://127.0.0.1:port each, in the order of
// their indices. A node keeps its address for as long as the cluster lives.
func (c *Cluster) URLs() []string {
	urls := make([]string, len(c.instances))
	for i, in := range c.instances {
		urls[i] = "redis://" + in.addr()
	}
	return urls
}

// Stop ends node i as a crash does: its connections break, new ones are refused.
// A node that is stopped already is left so. The only error is an index out of
// range.
func (c *Cluster) Stop(i int) error {
	in, err := c.instance("Stop", i)
	if err != nil {
		return err
	}
	in.stop()
	return nil
}

// Restart starts node i again at its address, after stopping it if it runs.
//
// With keepData it has the keys that it had, less those that have expired since,
// like a server that writes everything to disk. Without, it has forgotten all it
// ever granted, like one that writes nothing: the case that a lock service has to
// survive. Either way its script cache is empty, as a real server's would be.
func (c *Cluster) Restart(i int, keepData bool) error {
	in, err := c.instance("Restart", i)
	if err != nil {
		return err
	}
	return in.restart(keepData)
}

// Hang makes node i stand still, as a stopped process or a stalled disk does: it
// accepts connections and takes requests, and answers none until Resume, except
// with an error to a command that it does not know. Hanging a node that hangs, or
// one that is stopped, changes nothing.
func (c *Cluster) Hang(i int) error {
	in, err := c.instance("Hang", i)
	if err != nil {
		return err
	}
	in.hang()
	return nil
}

// Resume lets a hung node go on: it carries out what reached it in the meantime,
// however late that is, and answers. A node that does not hang is left as it is.
// Stop, Restart and Close end a hang as well, and the node may carry out what had
// reached it before it goes, like one that comes back for a moment and then dies.
func (c *Cluster) Resume(i int) error {
	in, err := c.instance("Resume", i)
	if err != nil {
		return err
	}
	in.resume()
	return nil
}

// Close stops all nodes for good. Closing twice is fine.
func (c *Cluster) Close() {
	for _, in := range c.instances {
		in.close()
	}
}

func (c *Cluster) instance(method string, i int) (*instance, error) {
	if i < 0 || i >= len(c.instances) {
		return nil, fmt.Errorf("embedded: %s: node %d of %d: indices run from 0 to %d", method, i, len(c.instances), len(c.instances)-1)
	}
	return c.instances[i], nil
}
