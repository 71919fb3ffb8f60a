package gocronlock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/quorum/adapter/gocronlock"
)

// The other processes are this test binary, executed again: TestMain runs replica instead of the tests where the first
// variable says by how much its clock is late.
const (
	taskVariable = "REDQUORUM_TEST_TASK"
	nodeVariable = "REDQUORUM_TEST_NODES"
)

// A tick comes every interval. The replicas come to it one lateness after the other, when the job has long been done.
const (
	interval    = 2 * time.Second
	realHold    = 1200 * time.Millisecond
	lateness    = 150 * time.Millisecond
	replicas    = 3
	ticks       = 3
	realTimeout = 500 * time.Millisecond
	patience    = 2 * time.Minute
)

// A visit is what a replica tells about one tick: when it came to it, and what came of it.
type visit struct {
	Replica int
	At      time.Time
	Ran     bool
	Held    bool // by another
	Err     string
}

// replica is a service with a scheduler, until its standard input ends.
func replica(number string) int {
	n, err := strconv.Atoi(number)
	if err == nil {
		err = serve(n, strings.Split(os.Getenv(nodeVariable), ","))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serve(number int, nodes []string) error {
	locks, err := quorum.Open(quorum.Config{NodeTimeout: realTimeout}, nodes...)
	if err != nil {
		return err
	}
	defer locks.Close()
	locker, err := gocronlock.New(locks, gocronlock.Config{MinHold: realHold})
	if err != nil {
		return err
	}
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		return err
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	tell := func(v visit) {
		mu.Lock()
		defer mu.Unlock()
		v.Replica, v.At = number, time.Now()
		_ = out.Encode(v) // the parent is gone: then standard input ends as well
	}
	// Whole intervals of the wall clock, as with a cron expression, but late by what tells this replica's clock apart.
	first := time.Now().Truncate(interval).Add(interval + time.Duration(number)*lateness)
	_, err = s.NewJob(gocron.DurationJob(interval),
		gocron.NewTask(func() { tell(visit{Ran: true}) }), // a job of no length
		gocron.WithName("report"),
		gocron.WithStartAt(gocron.WithStartDateTime(first)),
		gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
			tell(visit{Held: errors.Is(err, quorum.ErrNotAcquired), Err: err.Error()})
		})))
	if err != nil {
		return err
	}
	s.Start()
	_, _ = io.Copy(io.Discard, os.Stdin) // the parent ended it, or died
	return errors.Join(s.Shutdown(), os.Stdout.Close())
}

// startReplicas starts the processes and returns what they tell, until the end of the test.
func startReplicas(t *testing.T, servers []*redisserver.Server) <-chan visit {
	t.Helper()
	told := make(chan visit, 1000)
	for n := range replicas {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", taskVariable, n),
			nodeVariable+"="+strings.Join(redisserver.URLs(servers), ","))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		must(t, err)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		read := make(chan struct{})
		go func() {
			defer close(read)
			for d := json.NewDecoder(out); ; {
				var v visit
				if err := d.Decode(&v); err != nil {
					return // it has ended
				}
				told <- v
			}
		}()
		t.Cleanup(func() {
			in.Close()
			kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
			defer kill.Stop()
			<-read
			if err := cmd.Wait(); err != nil {
				t.Errorf("replica %d: %v", n, err)
			}
		})
	}
	return told
}

// Every tick is run by exactly one of three replicas, though the job is done long before the others come to it.
//
// A machine that stands still makes replicas later than MinHold allows for. So only those ticks are judged to which all
// three came in time, after one to which they came in time, too.
func TestRealTickIsRunOnceByThreeReplicas(t *testing.T) {
	servers := redisserver.StartN(t, 5)
	told := startReplicas(t, servers)
	visits := map[int64][]visit{} // by tick
	limit := time.After(patience)
	judged, inTime, last := 0, false, int64(0)
	for judged < ticks {
		var v visit
		select {
		case v = <-told:
		case <-limit:
			t.Fatalf("after %v only %d ticks to which all came in time: %+v", patience, judged, visits)
		}
		if v.Err != "" && !v.Held {
			t.Fatalf("replica %d: %s", v.Replica, v.Err)
		}
		tick := v.At.UnixNano() / int64(interval)
		if visits[tick] = append(visits[tick], v); len(visits[tick]) < replicas {
			continue
		}
		after := inTime && tick == last+1
		last, inTime = tick, comeInTime(visits[tick])
		if !after || !inTime {
			continue
		}
		judged++
		ran := 0
		for _, v := range visits[tick] {
			if v.Ran {
				ran++
			}
		}
		if ran != 1 {
			t.Errorf("tick %d was run %d times: %+v", tick, ran, visits[tick])
		}
	}
}

// comeInTime tells whether every replica came once, and within MinHold of the others.
func comeInTime(visits []visit) bool {
	came := map[int]bool{}
	for _, v := range visits {
		late := time.Duration(v.At.UnixNano() % int64(interval))
		came[v.Replica] = late < realHold*2/3
	}
	for n := range replicas {
		if !came[n] {
			return false
		}
	}
	return len(visits) == replicas
}
