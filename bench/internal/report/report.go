// Package report shows what was measured: progress, a table, a page with plots.
package report

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/redquorum/redquorum/bench/internal/measure"
	"github.com/redquorum/redquorum/bench/internal/peers"
	"github.com/redquorum/redquorum/bench/internal/scenario"
)

// A Report is one run. It is also what --json writes.
type Report struct {
	Started      time.Time        `json:"started"`
	Nodes        string           `json:"nodes"`
	Server       string           `json:"server,omitempty"`
	Quick        bool             `json:"quick"`
	Interrupted  bool             `json:"interrupted"`
	Seconds      float64          `json:"seconds_per_measurement"`
	System       string           `json:"system"`
	CPUs         int              `json:"cpus"`
	Go           string           `json:"go"`
	Clients      []Client         `json:"clients"`
	Measurements []measure.Result `json:"measurements"`
}

// A Client is one of those that are compared.
type Client struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	How     string `json:"how"`
}

// modules are where the clients' code is.
var modules = map[string]string{
	"redsync":       "github.com/go-redsync/redsync/v4",
	"rueidislock":   "github.com/redis/rueidis",
	"rueidislock-5": "github.com/redis/rueidis",
	"redislock":     "github.com/bsm/redislock",
}

// Clients describes the peers, with the versions that this program was built with.
func Clients(all []peers.Peer) []Client {
	versions := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			versions[m.Path] = m.Version
		}
	}
	clients := make([]Client, len(all))
	for i, p := range all {
		clients[i] = Client{p.Name, versions[modules[p.Name]], p.How}
	}
	return clients
}

// about is everything that the figures depend on, in one line.
func (r *Report) about() string {
	s := fmt.Sprintf("%s; %s, %d processors, %s; %v s per measurement", r.Nodes, r.System, r.CPUs, r.Go, r.Seconds)
	if r.Server != "" {
		s = "Redis " + r.Server + "; " + s
	}
	return s
}

// caveats are why the figures are not to be believed, if so.
func (r *Report) caveats() []string {
	var all []string
	if r.Quick {
		all = append(all, "A quick run: it shows that everything works; its figures mean little.")
	}
	if r.Interrupted {
		all = append(all, "The run was interrupted: measurements are missing.")
	}
	return all
}

// of are the measurements of a scenario.
func (r *Report) of(s scenario.Scenario) []measure.Result {
	var rows []measure.Result
	for _, m := range r.Measurements {
		if m.Scenario == s.Name {
			rows = append(rows, m)
		}
	}
	return rows
}
