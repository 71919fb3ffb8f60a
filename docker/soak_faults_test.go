package docker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redquorum/redquorum/docker"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
)

// What can happen to a node, and to the network before it.

// A fault befalls one node, or several at once, and all clients with it.
type fault struct {
	name       string
	begin, end func(v *victim) error // end is nil if nothing is to be put right
	every      time.Duration         // it happens over and over, until its end
	// forgets: the node comes back without what it knew.
	forgets bool
	// nodes and length are of faults of several nodes: of how many, and for how long at least.
	nodes  int
	length time.Duration
	// first: only the first of the nodes shows it.
	first bool
	// shows tells whether a vote is one that this fault explains; told asks the server, of a fault that no vote shows.
	// A fault goes on until then; one that forgets does not, since what it forgot shows when it is back.
	shows func(err error) bool
	// inARow is how many such votes there have to be one after the other; 0 is one.
	inARow int
	told   func(v *victim) (bool, error)
}

// A victim is a node with a fault.
type victim struct {
	c     *docker.Cluster
	i     int
	first bool          // of the nodes that have the fault
	admin *redis.Client // past the gate
	// What the server told so far.
	killed, missed int64
}

// often is how often what takes no time happens, so that it finds every request once in the middle of it.
const often = soakTTL / 20

// inARow is how many votes that came too late are a sign of a fault: on a busy machine there is one now and then
// without any.
const inARow = 5

var nodeFaults = []fault{
	{
		name:  "paused",
		begin: each((*docker.Cluster).Pause), end: each((*docker.Cluster).Unpause), shows: hung, inARow: inARow,
	},
	{name: "killed, and back with its data", begin: each((*docker.Cluster).Kill), end: restart(true), shows: gone},
	{
		name:  "killed, and back empty",
		begin: each((*docker.Cluster).Kill), end: restart(false), shows: rests, forgets: true,
	},
	{name: "stopped, and back with its data", begin: each((*docker.Cluster).Stop), end: restart(true), shows: gone},
	{name: "restarted with its data", begin: restart(true), shows: gone},
	{name: "restarted empty", begin: restart(false), shows: rests, forgets: true},
	{name: "flushed", begin: command("flushall"), every: soakTTL / 5, shows: rests, forgets: true},
	{name: "scripts flushed", begin: command("script", "flush"), every: often, told: (*victim).missesScripts},
	{name: "connections killed", begin: disconnect("normal"), every: often, told: (*victim).hasKilled},
	{name: "subscriptions killed", begin: disconnect("pubsub"), every: often, told: (*victim).hasKilled},
	{
		name:  "all permissions withdrawn", // but the one to give them back
		begin: command("acl", "setuser", "default", "-@all", "+acl"),
		end:   command("acl", "setuser", "default", "+@all"), shows: forbids,
	},
	{
		name:  "permission to expire withdrawn",
		begin: command("acl", "setuser", "default", "-pexpire"),
		end:   command("acl", "setuser", "default", "+@all"), shows: forbids,
	},
	{
		name:  "memory full",
		begin: command("config", "set", "maxmemory", "1"),
		end:   command("config", "set", "maxmemory", "64mb"), shows: full,
	},
}

// Two nodes that are cut off leave a bare quorum. That is what makes one that forgets dangerous. Three leave none, and
// for longer than a lease lives without one.
var netFaults = []fault{
	cut("two cut off", (*docker.Cluster).Partition, 2, soakTTL/2),
	cut("requests to two cut off", (*docker.Cluster).CutRequests, 2, soakTTL/2),
	cut("replies of two cut off", (*docker.Cluster).CutReplies, 2, soakTTL/2),
	cut("three cut off", (*docker.Cluster).Partition, 3, soakTTL*5/4),
	cut("requests to three cut off", (*docker.Cluster).CutRequests, 3, soakTTL*5/4),
	cut("replies of three cut off", (*docker.Cluster).CutReplies, 3, soakTTL*5/4),
}

func cut(name string, how func(*docker.Cluster, int) error, nodes int, length time.Duration) fault {
	return fault{name: name, begin: each(how), end: heal, shows: hung, inARow: inARow, nodes: nodes, length: length}
}

// What the restart guard is for: two nodes are away for so long that leases live on the other three alone, and come back
// at the moment at which one of those forgets. Together they would be a quorum that knows of nobody.
var guardFaults = []fault{
	{
		name: "flushed as two come back", begin: others((*docker.Cluster).Partition),
		end: firstly(command("flushall")), shows: rests, forgets: true, first: true, nodes: 3, length: soakTTL * 5 / 4,
	},
	{
		name: "restarted empty as two come back", begin: others((*docker.Cluster).Partition),
		end: firstly(restart(false)), shows: rests, forgets: true, first: true, nodes: 3, length: soakTTL * 5 / 4,
	},
}

func kinds() (names []string) {
	for _, f := range slices.Concat(nodeFaults, netFaults, guardFaults) {
		names = append(names, f.name)
	}
	return names
}

// others does something to all nodes that have the fault but the first.
func others(step func(*docker.Cluster, int) error) func(*victim) error {
	return func(v *victim) error {
		if v.first {
			return nil
		}
		return step(v.c, v.i)
	}
}

// firstly does something to the first, and then heals the others.
func firstly(step func(*victim) error) func(*victim) error {
	return func(v *victim) error {
		if v.first {
			return step(v)
		}
		return heal(v)
	}
}

func each(step func(*docker.Cluster, int) error) func(*victim) error {
	return func(v *victim) error { return step(v.c, v.i) }
}

var heal = each((*docker.Cluster).Heal)

func restart(keepData bool) func(*victim) error {
	return func(v *victim) error { return v.c.Restart(v.i, keepData) }
}

func command(args ...any) func(*victim) error {
	return func(v *victim) error { return v.admin.Do(context.Background(), args...).Err() }
}

// disconnect breaks all connections of a kind but the one that it uses.
func disconnect(kind string) func(*victim) error {
	return func(v *victim) error {
		n, err := v.admin.Do(context.Background(), "client", "kill", "type", kind).Int64()
		v.killed += n
		return err
	}
}

func (v *victim) hasKilled() (bool, error) { return v.killed > 0, nil }

// missesScripts tells whether the server was asked for a script that it does not have, since it was asked first.
func (v *victim) missesScripts() (bool, error) {
	stats, err := v.admin.Info(context.Background(), "errorstats").Result()
	if err != nil {
		return false, err
	}
	var n int64
	if _, counted, found := strings.Cut(stats, "errorstat_NOSCRIPT:count="); found {
		digits, _, _ := strings.Cut(counted, "\r")
		if n, err = strconv.ParseInt(digits, 10, 64); err != nil {
			return false, err
		}
	}
	if v.missed == 0 {
		v.missed = n + 1
	}
	return n >= v.missed, nil
}

// How a client sees a fault.

func hung(err error) bool { return errors.Is(err, node.ErrTimeout) }

func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// rests is a node that has forgotten, knows it, and does not vote.
func rests(err error) bool { return errors.Is(err, quorum.ErrQuarantined) }

// forbids is a server that refuses a command, outside of scripts or inside.
func forbids(err error) bool {
	return err != nil &&
		(strings.Contains(err.Error(), "NOPERM") || strings.Contains(err.Error(), "The user executing the script can't"))
}

func full(err error) bool { return err != nil && strings.Contains(err.Error(), "OOM") }

// admin returns a connection to a node, past its gate. It is one connection: permissions that are withdrawn may not
// suffice for another.
func (s *soak) admin(i int) (*redis.Client, error) {
	box, err := s.engine.ContainerInspect(s.t.Context(), s.cluster.Containers()[i], client.ContainerInspectOptions{})
	if err != nil {
		return nil, err
	}
	ports := box.Container.NetworkSettings.Ports[network.MustParsePort("6379/tcp")]
	if len(ports) == 0 {
		return nil, fmt.Errorf("node %d is not published", i)
	}
	return redis.NewClient(&redis.Options{
		Addr: net.JoinHostPort("127.0.0.1", ports[0].HostPort), Protocol: 2, PoolSize: 1,
		DialTimeout: patience, ReadTimeout: patience, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}), nil
}
