package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/redquorum/redquorum/cmd/redquorum/internal/counter"
	"github.com/redquorum/redquorum/cmd/redquorum/internal/stock"
)

// grace is how long a worker process has to give back its lock after its line was cut: its coordinator closes within
// twice the longest node timeout, a second.
const grace = 2 * time.Second

// employ runs a worker process until it has done its job, or ctx ended. The only thing it learns from its command line
// is that it is one.
func employ(ctx context.Context, command []string, s *stock.Stock, job counter.Job) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	// The end of its input tells the process to stop. Only one that does not is killed.
	cmd.Cancel = in.Close
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("worker process %d did not start: %w", job.Process, err)
	}

	counter.Serve(line{out, in}, s, job)
	if err := cmd.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("worker process %d died: %w %s", job.Process, err, strings.TrimSpace(complaint.String()))
	}
	return nil
}

// line is the output and the input of a process.
type line struct {
	io.ReadCloser
	in io.WriteCloser
}

func (l line) Write(p []byte) (int, error) { return l.in.Write(p) }

func (l line) Close() error { return errors.Join(l.in.Close(), l.ReadCloser.Close()) }
