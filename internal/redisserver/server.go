package redisserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/direct"
	"github.com/redquorum/redquorum/internal/loopback"
)

// Options say how to launch a server. The zero value is a server found in the
// environment or PATH, empty, without persistence, in a directory of its own.
type Options struct {
	// Binary is the redis-server to run. Default: $REDQUORUM_REDIS_SERVER,
	// else redis-server in PATH.
	Binary string
	// Dir is the working directory, for the log and for what persistence
	// writes. Default: a temporary one, removed by Close.
	Dir string
	// Args are further arguments. They follow the defaults and so win over
	// them: "--appendonly", "yes" turns persistence on.
	Args []string
	// Sentinel makes it a sentinel, with these lines of configuration. It goes on
	// with what it has learnt since when it is restarted.
	Sentinel string
	// TLS makes the server listen on a second port, with TLS. The first one stays
	// as it is, for looking at the server.
	TLS *TLS
}

// Server is one redis-server on a port of its own. Its methods may be called
// from several goroutines.
type Server struct {
	binary  string
	args    []string
	tls     *TLS
	dir     string
	ownsDir bool
	watches string // the file in which a sentinel remembers; empty if it is none

	mu     sync.Mutex // serializes the life of the process
	port   *loopback.Port
	secure *loopback.Port // nil without TLS
	proc   *process       // nil when none runs
	closed bool
	client *redis.Client
}

// ErrNoBinary says that there is no redis-server to run on this machine.
var ErrNoBinary = errors.New("redisserver: no redis-server binary")

// launchAttempts bounds the search for a port that nobody takes from us between
// choosing it and listening on it. Where ports can be reserved the first will do.
const launchAttempts = 5

// Launch starts a server and returns when it answers.
func Launch(opts Options) (*Server, error) {
	binary, err := findBinary(opts.Binary)
	if err != nil {
		return nil, err
	}
	s := &Server{binary: binary, args: opts.Args, tls: opts.TLS, dir: opts.Dir}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "redquorum-redis-"); err != nil {
			return nil, fmt.Errorf("redisserver: %w", err)
		}
		s.ownsDir = true
	}
	if opts.Sentinel != "" {
		s.watches = filepath.Join(s.dir, "sentinel.conf")
		if err := os.WriteFile(s.watches, []byte(opts.Sentinel), 0o600); err != nil {
			s.removeDir()
			return nil, fmt.Errorf("redisserver: %w", err)
		}
	}
	for range launchAttempts {
		if err = s.reserve(); err != nil {
			break
		}
		if s.proc, err = s.run(); err == nil {
			return s, nil
		}
		s.release()
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	s.removeDir()
	return nil, err
}

// reserve picks the server's ports.
func (s *Server) reserve() (err error) {
	if s.port, err = loopback.Reserve(); err != nil || s.tls == nil {
		return err
	}
	if s.secure, err = loopback.Reserve(); err != nil {
		s.port.Release()
	}
	return err
}

// release gives them back.
func (s *Server) release() {
	s.port.Release()
	if s.secure != nil {
		s.secure.Release()
	}
}

// Addr is the server's host:port. It never changes.
func (s *Server) Addr() string { return s.port.Addr() }

// URL is the server's address as redis://host:port.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Dir is the working directory of the process.
func (s *Server) Dir() string { return s.dir }

// LogPath is the file that the process writes to, across restarts.
func (s *Server) LogPath() string { return filepath.Join(s.dir, "redis.log") }

// PID is the id of the running process, 0 when there is none.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.pid()
}

// Pause stops the process (SIGSTOP). The kernel goes on accepting connections
// and requests in its name; nobody answers them until Resume. On Linux Pause
// returns when the process does stand still.
func (s *Server) Pause() error {
	return s.signal("pausing", (*process).pause)
}

// Resume continues a paused process (SIGCONT), which then carries out what
// reached it in the meantime.
func (s *Server) Resume() error {
	return s.signal("resuming", (*process).resume)
}

func (s *Server) signal(doing string, send func(*process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return fmt.Errorf("redisserver: %s %s: no process runs", doing, s.Addr())
	}
	if err := send(s.proc); err != nil {
		return fmt.Errorf("redisserver: %s %s: %w", doing, s.Addr(), err)
	}
	return nil
}

// Kill ends the process with SIGKILL, paused or not, and returns when it is
// gone: nothing is flushed, nobody is told. A server that does not run is left
// as it is.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
}

func (s *Server) kill() {
	if s.proc != nil {
		s.proc.kill()
		s.proc = nil
	}
}

// Restart kills the process if it runs and starts another one on the same port,
// empty unless the arguments turned persistence on. It returns when the new one
// answers.
func (s *Server) Restart() error { return s.RestartWith() }

// RestartWith is Restart with further arguments, for this process and those
// that follow it. They win over earlier ones.
func (s *Server) RestartWith(args ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("redisserver: restarting %s: already closed", s.Addr())
	}
	s.kill()
	s.args = append(slices.Clip(s.args), args...)
	proc, err := s.run()
	if err != nil {
		return err
	}
	s.proc = proc
	return nil
}

// Client is a plain client for looking at the server directly, past the code
// under test. Close closes it.
func (s *Server) Client() *redis.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		s.client = direct.New(&redis.Options{Addr: s.Addr()})
	}
	return s.client
}

// Log is what the server logged so far, all its processes.
func (s *Server) Log() string {
	b, err := os.ReadFile(s.LogPath())
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Close kills the process, closes the client and gives the port and the
// temporary directory back. Closing twice is fine.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	if s.client != nil {
		_ = s.client.Close() // reports nothing but a second close
	}
	s.kill()
	s.release()
	s.removeDir()
}

func (s *Server) removeDir() {
	if s.ownsDir {
		_ = os.RemoveAll(s.dir) // a leftover in the temporary directory harms nobody
	}
}

// run starts a process on the server's port and waits until it answers.
func (s *Server) run() (*process, error) {
	// Standard output, not --logfile: it also takes the complaint about an
	// argument that the server does not know, which comes before any log is open.
	log, err := os.OpenFile(s.LogPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("redisserver: %w", err)
	}
	defer log.Close() // the process has its own copy by then
	proc, err := start(s.binary, s.arguments(), log)
	if err != nil {
		return nil, fmt.Errorf("redisserver: %w", err)
	}
	if err := s.awaitReady(proc); err != nil {
		proc.kill()
		return nil, fmt.Errorf("redisserver: %s: %w\n%s", s.Addr(), err, s.Log())
	}
	return proc, nil
}

// arguments are those of the next process.
func (s *Server) arguments() []string {
	args := []string{
		"--bind", "127.0.0.1",
		"--port", strconv.Itoa(s.port.Number()),
		"--dir", s.dir,
		"--daemonize", "no",
	}
	if s.watches != "" {
		args = append([]string{s.watches, "--sentinel"}, args...)
	} else {
		args = append(args, "--save", "", "--appendonly", "no")
	}
	return append(append(args, s.tlsArgs()...), s.args...)
}
