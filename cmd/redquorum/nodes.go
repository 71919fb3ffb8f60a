package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redquorum/redquorum/quorum"
)

// nodesVariable is where the addresses of the nodes are when --nodes does not say.
const nodesVariable = "REDQUORUM_NODES"

// prefixVariable is where the prefix of all names is when --prefix does not say.
const prefixVariable = "REDQUORUM_PREFIX"

// whereNodesAre is the part of the help that says how nodes are named.
const whereNodesAre = `The nodes are those of --nodes, else of REDQUORUM_NODES, else of the file
redquorum/nodes in the user's configuration folder (on Linux ~/.config): URLs,
separated by commas, spaces or lines; in a file and in the standard input # begins a
comment. Passwords
belong into the variable, the file, or --nodes - (standard input), since
everybody on a machine can read its command lines.`

// A cluster is what the flags of a command say about the nodes.
type cluster struct {
	nodes   string
	prefix  string
	ttl     time.Duration
	timeout time.Duration

	from   string // where the nodes were named
	teller *teller
	tracer quorum.AcquireTracer // nil if nobody wants to know
}

// flags adds the flags that say which nodes, and how long each has.
func (c *cluster) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&c.nodes, "nodes", "", "the nodes: `url,url,...`, or - to read them from standard input")
	flags.StringVar(&c.prefix, "prefix", os.Getenv(prefixVariable), "what your clients put in front of every name")
	flags.Var(span{&c.timeout, time.Millisecond, time.Minute}, "node-timeout", "how long each node has to answer (default a twentieth of the TTL, 20ms to 500ms)")
}

// ttlFlag adds the flag for the lock's TTL.
func (c *cluster) ttlFlag(cmd *cobra.Command) {
	c.ttl = 30 * time.Second
	cmd.Flags().Var(span{&c.ttl, 100 * time.Millisecond, 24 * time.Hour}, "ttl", "the lock's TTL, renewed every third of it")
}

// open opens the cluster. It talks to nobody yet.
func (c *cluster) open(cmd *cobra.Command) (*quorum.Coordinator, error) {
	urls, err := c.urls(cmd)
	if err != nil {
		return nil, err
	}
	c.teller = newTeller(cmd.ErrOrStderr())
	coordinator, err := quorum.Open(quorum.Config{
		TTL: c.ttl, NodeTimeout: c.timeout, Prefix: c.prefix, Logger: slog.New(c.teller), Tracer: c.tracer,
	}, urls...)
	if err != nil {
		return nil, fmt.Errorf("%w (the nodes are those of %s)", err, c.from)
	}
	return coordinator, nil
}

// urls finds the addresses of the nodes.
func (c *cluster) urls(cmd *cobra.Command) ([]string, error) {
	if cmd.Flags().Changed("nodes") {
		c.from = "--nodes"
		return addresses(cmd, c.nodes, fmt.Sprintf("in %s, in the file redquorum/nodes of your configuration folder, or with --nodes -, on standard input", nodesVariable))
	}
	if list := os.Getenv(nodesVariable); list != "" {
		c.from = nodesVariable
		return split(list, nodesVariable)
	}
	file := "redquorum/nodes in the user's configuration folder"
	if folder, err := os.UserConfigDir(); err == nil {
		file = filepath.Join(folder, "redquorum", "nodes")
		text, err := os.ReadFile(file) //nolint:gosec // the user's own
		switch {
		case err == nil:
			c.from = file
			return split(withoutComments(string(text)), file)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return nil, fmt.Errorf("which nodes? Name them with --nodes, in %s, or in the file %s; see %s --help", nodesVariable, file, cmd.CommandPath())
}

// addresses splits the list of --nodes, which the standard input has if it is "-". Of a password it warns, and says where it
// belongs.
func addresses(cmd *cobra.Command, list, better string) ([]string, error) {
	if list == "-" {
		read, err := io.ReadAll(cmd.InOrStdin())
		if err != nil {
			return nil, fmt.Errorf("reading --nodes from standard input: %w", err)
		}
		return split(withoutComments(string(read)), "--nodes")
	}
	urls, err := split(list, "--nodes")
	if slices.ContainsFunc(urls, hasPassword) {
		fmt.Fprintf(cmd.ErrOrStderr(), "redquorum: there is a password behind --nodes, and everybody on this machine can read its command lines: "+
			"name the nodes %s\n", better)
	}
	return urls, err
}

// hasPassword tells whether an address has a password in it. One that is no proper URL may have one, too.
func hasPassword(address string) bool {
	_, rest, _ := strings.Cut(address, "://")
	rest, options, _ := strings.Cut(rest, "?")
	at := strings.LastIndex(rest, "@")
	_, password, _ := strings.Cut(rest[:max(at, 0)], ":")
	return password != "" || strings.Contains(options, "password=")
}

// split splits a list of URLs. It never repeats them. The sentinels of a node, which commas separate, too, stay together.
func split(list, where string) ([]string, error) {
	var urls []string
	for _, part := range strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		if last := len(urls) - 1; last >= 0 && !strings.Contains(part, "://") && namesSentinels(urls[last]) {
			urls[last] += "," + part
			continue
		}
		urls = append(urls, part)
	}
	if len(urls) == 0 {
		return nil, fmt.Errorf("%s names no node: want redis://[user:password@]host:port, separated by commas", where)
	}
	return urls, nil
}

// namesSentinels tells whether an address is one of a node that sentinels watch.
func namesSentinels(address string) bool {
	scheme, _, _ := strings.Cut(address, "://")
	return strings.HasSuffix(scheme, "+sentinel")
}

// withoutComments cuts off what follows a #.
func withoutComments(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i], _, _ = strings.Cut(line, "#")
	}
	return strings.Join(lines, "\n")
}
