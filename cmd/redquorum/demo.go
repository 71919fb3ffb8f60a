package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/redquorum/redquorum/cmd/redquorum/internal/demo"
	"github.com/redquorum/redquorum/cmd/redquorum/internal/worker"
)

func demoCommand() *cobra.Command {
	cfg := demo.Config{Stock: 300, Processes: 4, Workers: 4, TTL: 2 * time.Second, Timeout: 2 * time.Minute}
	var nodes string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Sell a stock by several processes, without a lock and with one",
		Long: `demo sells a stock of items twice, by workers in several processes. A worker looks
how many are left, thinks, and sells one. Without a lock they oversell. With one
every item goes exactly once, although two of the five nodes, which run inside
this process, are killed in the middle and one of them comes back empty.

With --nodes it runs on your servers instead, and kills none: do that yourself.
It uses one lock with a name of its own, and removes its keys at the end; what
stays is the record that every node has of itself (redquorum_node).

Exit status: 0 if the sale with the lock was exact, 1 if it was not, 2 if the
demo did not get to its end.`,
		Example: `  redquorum demo
  redquorum demo --processes 8 --ttl 5s
  redquorum demo --nodes redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3
  redquorum demo --nodes - < urls    # passwords stay out of the process list`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cmd.Flags().Changed("nodes") {
				if cfg.Nodes, err = addresses(cmd, nodes, "with --nodes -, on standard input"); err != nil {
					return err
				}
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			cfg.Worker = []string{self, cmd.Name(), workerName}
			return demo.Run(cmd.Context(), cfg, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&nodes, "nodes", "", "run on these servers: `url,url,...`, or - to read them from standard input")
	flags.Var(whole{&cfg.Stock, 10, 100_000}, "stock", "items to sell")
	flags.Var(whole{&cfg.Processes, 1, 64}, "processes", "worker processes")
	flags.Var(whole{&cfg.Workers, 1, 64}, "workers", "workers in each")
	flags.Var(span{&cfg.TTL, 200 * time.Millisecond, time.Minute}, "ttl", "the lock's TTL; a sale lasts a good three of it")
	flags.Var(span{&cfg.Timeout, time.Second, time.Hour}, "timeout", "give up after this time; at least eight TTLs")
	cmd.AddCommand(workerCommand())
	return cmd
}

const workerName = "worker"

// workerCommand is a worker process of the demo.
func workerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    workerName,
		Short:  "The worker process of a demo",
		Hidden: true,
		Args:   noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if term.IsTerminal(int(os.Stdin.Fd())) {
				return errors.New("this is a part of redquorum demo, which starts it by itself")
			}
			// Writing to a parent that is gone must fail, and not kill: there may be a lock to give back.
			signal.Ignore(syscall.SIGPIPE)
			return worker.Run(cmd.Context(), pipes{})
		},
	}
}

// pipes is the line to the parent.
type pipes struct{}

func (pipes) Read(p []byte) (int, error)  { return os.Stdin.Read(p) }
func (pipes) Write(p []byte) (int, error) { return os.Stdout.Write(p) }
func (pipes) Close() error                { return os.Stdout.Close() }
