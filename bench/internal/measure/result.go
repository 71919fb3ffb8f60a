// Package measure counts: latencies, processor time, allocations, and what happens when.
package measure

// A Result is one row: one client in one scenario.
type Result struct {
	Scenario string `json:"scenario"`
	Peer     string `json:"peer"`
	Nodes    int    `json:"nodes"`

	Callers   int `json:"callers,omitempty"`   // goroutines, in each process
	Processes int `json:"processes,omitempty"` // other than ours; 0 where we call ourselves

	Seconds    float64 `json:"seconds,omitempty"`
	Pairs      int64   `json:"pairs,omitempty"` // acquire and release
	PerSecond  float64 `json:"per_second,omitempty"`
	Errors     int64   `json:"errors,omitempty"`
	FirstError string  `json:"first_error,omitempty"`
	// Overlaps is how often a holder began before the one before it was about to release: no lock does that.
	Overlaps int64 `json:"overlaps,omitempty"`

	CPUMicros float64 `json:"client_cpu_micros_per_pair,omitempty"`
	Allocs    float64 `json:"allocs_per_pair,omitempty"`
	Bytes     float64 `json:"bytes_per_pair,omitempty"`

	// Latency is of what Measured says.
	Measured string   `json:"measured,omitempty"`
	Latency  *Latency `json:"latency_micros,omitempty"`

	Timeline *Timeline `json:"timeline,omitempty"`
	Held     *Held     `json:"held,omitempty"`

	// Skipped is why there is nothing else, where that is so.
	Skipped string `json:"skipped,omitempty"`
}

// Held is what leases cost that nobody does anything with.
type Held struct {
	Leases        int     `json:"leases"`
	TTLSeconds    float64 `json:"ttl_seconds"`
	CPUShare      float64 `json:"cpu_share_of_a_core"`
	BytesPerLease float64 `json:"bytes_per_lease"`
	Lost          int     `json:"lost"`
}
