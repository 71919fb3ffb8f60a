// Package demo sells a stock twice, by workers in several processes: first without a lock, then with one, over nodes of
// which two are killed meanwhile.
//
// config.go what can be set, demo.go the order of events, sale.go one sale, process.go a worker process as its parent
// sees it, cluster.go the nodes and what befalls them, watch.go what is seen of them from outside, sweep.go what is
// left on them, screen.go and picture.go the progress, verdict.go the end.
package demo
