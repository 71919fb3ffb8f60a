package postgresserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	readyTimeout = 30 * time.Second // far more than a server takes on a busy machine
	readyPoll    = 5 * time.Millisecond
)

// Server is a running PostgreSQL server with nothing in it.
type Server struct {
	dir  string // holds the data, the socket and the log
	proc *process
}

// Launch starts a server and returns when it answers. The error is an ErrNoServer if this machine cannot run one.
func Launch() (*Server, error) {
	bin, err := findBin()
	if err != nil {
		return nil, err
	}
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	// Not a test's own directory: the path of a socket has about a hundred bytes.
	dir, err := os.MkdirTemp("", "redquorum-pg-")
	if err != nil {
		return nil, fmt.Errorf("postgresserver: %w", err)
	}
	s := &Server{dir: dir}
	if err := s.launch(bin, as); err != nil {
		err = fmt.Errorf("postgresserver: %w\n%s", err, s.Log())
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) launch(bin string, as *account) error {
	if err := as.own(s.dir); err != nil {
		return err
	}
	// The child is told when its thread ends, not when we do; see start.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Nothing here outlives the server, so nothing is synced to disk. Only who may enter the directory reaches the socket.
	initdb := s.command(as, bin, "initdb", "--pgdata", s.data(), "--username", "postgres",
		"--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	server := s.command(as, bin, "postgres", "-D", s.data(), "-k", s.dir,
		"-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=50", "-c", "autovacuum=off")
	log, err := os.Create(s.logPath())
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own copy by then
	server.Stdout, server.Stderr = log, log
	if s.proc, err = start(server); err != nil {
		return err
	}
	return s.awaitReady()
}

// command runs in the server's directory: the account may not be allowed to enter ours.
func (s *Server) command(as *account, bin, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, name), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = as.attributes()
	// Settings of a client in the environment (PGDATA, PGOPTIONS, …) are not meant for this server.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	return cmd
}

func (s *Server) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	for {
		err := ping(ctx, s.DSN())
		if s.proc.exited() {
			return errors.New("the process exited at its start")
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready after %v: %w", readyTimeout, err)
		case <-time.After(readyPoll):
		}
	}
}

func ping(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.Ping(ctx)
}

// DSN is where the server is, in the form of key=value pairs, to which more can be added. Every value that the
// environment could set is set.
func (s *Server) DSN() string {
	return fmt.Sprintf("host='%s' port=5432 user=postgres dbname=postgres sslmode=disable", s.dir)
}

func (s *Server) data() string    { return filepath.Join(s.dir, "data") }
func (s *Server) logPath() string { return filepath.Join(s.dir, "log") }

// Log is what the server logged so far.
func (s *Server) Log() string {
	b, err := os.ReadFile(s.logPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err.Error()
	}
	return string(bytes.TrimSpace(b))
}

// Close ends the server and removes what it wrote.
func (s *Server) Close() {
	if s.proc != nil {
		s.proc.stop()
	}
	_ = os.RemoveAll(s.dir) // a leftover in the temporary directory harms nobody
}
