// Package docker runs N independent Redis masters in containers, through
// testcontainers, for tests that want the real thing: processes that are killed,
// frozen, restarted with or without what they wrote to their disks, and cut off
// from their clients. It is to real servers what node/embedded is to embedded ones:
//
//	cluster, err := docker.Start(ctx, 5, docker.Options{})
//	...
//	defer cluster.Close()
//	use(cluster.URLs()...)     // redis://127.0.0.1:port, five of them
//	cluster.Kill(0)            // SIGKILL: connections break, new ones are refused
//	cluster.Restart(0, false)  // back at its address, empty
//	cluster.Partition(1)       // connections hang
//	cluster.Heal(1)
//
// A node keeps its address for as long as the cluster lives: clients connect to a
// gate in this process, which carries their data on to wherever the engine has
// published the container's port by now. The gate also makes the partitions; they
// need no privileges, neither here nor in the container. What docker offers for
// that, taking a container off its network, takes the published port along and so
// breaks connections: clients would be told at once what a partition hides.
//
// compose.yaml, beside this file, describes the same nodes for use by hand.
//
// # What remains
//
// Nothing: Close removes the containers and their volumes; networks are not
// created. When the process dies without Close, a shell that waits for its end runs
// docker rm; on machines without sh or the docker command only testcontainers' own
// reaper does that. The reaper is an image of its own: where no registry can be
// reached, set TESTCONTAINERS_RYUK_DISABLED=true.
//
// # What it is not
//
//   - The engine has to be on this machine: nodes are published on loopback only,
//     without a password.
//   - The nodes share a disk and a power supply. They fail independently only
//     because a test makes them.
//   - Data goes by way of the gate. Measure against servers without one.
package docker
