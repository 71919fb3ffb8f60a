package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/redquorum/redquorum/cmd/redquorum/internal/child"
	"github.com/redquorum/redquorum/quorum"
)

// What the command finds in its environment.
const (
	nameVariable  = "REDQUORUM_NAME"
	tokenVariable = "REDQUORUM_TOKEN"
)

func runCommand() *cobra.Command {
	r := runner{grace: 5 * time.Second}
	cmd := &cobra.Command{
		Use:   "run NAME -- COMMAND [ARGUMENT...]",
		Short: "Run a command while holding a lock",
		Long: `run takes the lock NAME, runs the command, and gives the lock back. It waits for the
lock as long as it takes, with --wait no longer than that, with --try not at all. When
that takes a while, it says for whom or what, on the standard error.

If the lock is lost while the command runs (no majority of the nodes could be
reached in time, or it was force-released), the command and all it has started is
told to end at once (SIGTERM), and killed when the grace time is over. From the
loss on somebody else may hold the lock: what must never be done twice belongs
behind something that compares fencing tokens. The command finds its own in
REDQUORUM_TOKEN, and the lock's name in REDQUORUM_NAME. The rest of its environment
is yours, REDQUORUM_NODES included.

Signals are passed on to the command, SIGCONT and SIGWINCH included. On Linux the
command has the terminal, if there is one: Ctrl-Z stops the command and not redquorum,
which goes on holding the lock, so the shell gives no prompt; kill -CONT, to redquorum,
lets the command go on. If redquorum itself is stopped (SIGSTOP; elsewhere Ctrl-Z, too),
it cannot renew the lock, and nobody ends the command when it is lost. If redquorum is
killed, so is the command, on Linux.

` + whereNodesAre + `

Exit status: the command's own (128 and the number of the signal that ended it;
127 if it was not found, 126 if it could not be started), or
  120  not run: others held the lock
  121  the lock was lost while the command ran
  122  not run: no quorum of nodes answered
  123  not run for another reason, such as refused credentials, two addresses
       that are one server, or bad usage`,
		Example: `  redquorum run backup -- /usr/local/bin/backup --full
  redquorum run --try nightly -- make report           # in three crontabs, runs in one
  redquorum run --wait 10s deploy -- ./deploy.sh
  redquorum run import -- sh -c 'psql -v token=$REDQUORUM_TOKEN -f import.sql'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
				return r.refuse(errors.New("want NAME -- COMMAND, such as: redquorum run backup -- tar cf /backup.tar /home"))
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp // a lock's name is no file
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0], args[1:]) },
	}
	r.flags(cmd)
	r.ttlFlag(cmd)
	flags := cmd.Flags()
	flags.Var(span{&r.wait, 0, 365 * 24 * time.Hour}, "wait", "wait no longer than this for the lock (default as long as it takes)")
	flags.BoolVar(&r.try, "try", false, "do not wait while others hold the lock")
	flags.Var(span{&r.grace, 0, time.Hour}, "grace", "how long the command has to end when the lock was lost")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return r.refuse(flagError(cmd, err)) })
	return cmd
}

// runner runs a command under a lock.
type runner struct {
	cluster
	wait, grace time.Duration
	try         bool
	waiting     waiting
}

// refuse is an error before anything was done.
func (*runner) refuse(err error) error { return &exit{notRun, err} }

func (r *runner) run(cmd *cobra.Command, name string, command []string) (err error) {
	if r.try && cmd.Flags().Changed("wait") {
		return r.refuse(errors.New("--try waits for nobody, and --wait does: want one of them"))
	}
	r.waiting.name, r.tracer = name, &r.waiting
	c, err := r.open(cmd)
	if err != nil {
		return r.refuse(err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()

	signals := make(chan os.Signal, 8)
	signal.Notify(signals, child.Forwarded...)
	defer signal.Stop(signals)
	lease, err := r.acquire(cmd, c, name, signals)
	if err != nil {
		return err
	}
	r.teller.relent(c.Stats)
	status, err := child.Command{
		Args: command,
		Env:  []string{nameVariable + "=" + name, tokenVariable + "=" + strconv.FormatInt(lease.Token(), 10)},
		In:   cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr(),
		Grace: r.grace,
	}.Run(signals, lease.Done())
	if err == nil && lease.Err() != nil {
		return &exit{lost, fmt.Errorf("%q was lost while the command ran: it was ended, with status %d", name, status)}
	}
	// A loss shows at a renewal, and the command may have ended before one was due. So the nodes are asked a last time.
	if err == nil && errors.Is(lease.Renew(context.Background()), quorum.ErrLost) {
		return &exit{lost, fmt.Errorf("%q was lost while the command ran, which ended by itself, with status %d", name, status)}
	}
	// What stays on the nodes runs out there: the command has done its work, and its status is what counts.
	if released := lease.Release(context.Background()); released != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "redquorum: the command is done, but the lock may stay closed for up to %v: %s\n", r.ttl,
			strings.TrimPrefix(released.Error(), "redquorum: "))
	}
	return &exit{status, err}
}

// acquire takes the lock. A signal ends the waiting, and the process as if it had not been caught.
func (r *runner) acquire(cmd *cobra.Command, c *quorum.Coordinator, name string, signals <-chan os.Signal) (*quorum.Lease, error) {
	var beside sync.WaitGroup
	defer beside.Wait()
	ctx, cancel := context.WithCancel(context.WithoutCancel(cmd.Context())) // which a signal ends, too
	defer cancel()
	stop, caught := make(chan struct{}), make(chan os.Signal, 1)
	go func() {
		defer close(caught)
		for {
			select {
			case s := <-signals:
				if child.Harmless(s) {
					continue
				}
				caught <- s
				cancel()
			case <-stop:
			}
			return
		}
	}()
	waits, had := context.WithCancel(ctx)
	beside.Go(func() { r.waiting.tell(waits, r.teller.say) })
	twins := make(chan error, 1)
	beside.Go(func() { twins <- r.twins(ctx, c) })
	var lease *quorum.Lease
	var err error
	switch {
	case r.try:
		lease, err = c.TryAcquire(ctx, name)
	case cmd.Flags().Changed("wait"):
		lease, err = c.Acquire(ctx, name, quorum.WithWaitTime(r.wait))
	default:
		lease, err = c.Acquire(ctx, name)
	}
	had()
	if err == nil {
		err = <-twins
		if err == nil && r.waiting.waited() { // that was then
			err = r.twins(ctx, c)
		}
	}
	close(stop)
	if s, ok := <-caught; ok { // a lease that came at the same moment Close gives back
		n, _ := s.(syscall.Signal)
		return nil, &exit{child.BySignal + int(n), fmt.Errorf("%v while waiting for %q", s, name)}
	}
	if err != nil { // and if there is a lease, Close gives it back
		return nil, &exit{lockStatus(err), told(name, err)}
	}
	return lease, nil
}

// twins finds out whether two of the addresses are one server. The library does so, too, but a client that has just begun may
// have a quorum of answers before it has heard all, and this one makes no second attempt. So every node is asked, at the same
// time as for the lock. One that does not answer in its time has no twin that matters: the half more is for looking again at
// two that seem to be alike. Whatever else is wrong, a quorum of nodes has granted the lock.
func (r *runner) twins(ctx context.Context, c *quorum.Coordinator) error {
	patience := quorum.Config{TTL: r.ttl, NodeTimeout: r.timeout}.WithDefaults().NodeTimeout
	ctx, cancel := context.WithTimeout(ctx, patience+patience/2)
	defer cancel()
	if err := c.Ping(ctx); errors.Is(err, quorum.ErrSameServer) {
		return err
	}
	return nil
}

// told is an error about a lock that was not acquired, in the words of one line: that others hold it is what --try is for, and
// shall not fill somebody's mailbox. Of two addresses that are one server the nodes' votes say nothing.
func told(name string, err error) error {
	if errors.Is(err, quorum.ErrSameServer) {
		return fmt.Errorf("%w, so %q is not taken; redquorum doctor says which", quorum.ErrSameServer, name)
	}
	var q *quorum.QuorumError
	if !errors.Is(err, quorum.ErrNotAcquired) || !errors.As(err, &q) {
		return err
	}
	holder, _ := holderOf(q)
	if q.RetryAfter > 0 {
		return fmt.Errorf("%q is held by %s, for %v unless it is renewed", name, holder, q.RetryAfter.Round(time.Millisecond))
	}
	return fmt.Errorf("%q is held by %s", name, holder)
}
