package measure

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	finest  = 1                                         // microsecond
	longest = int64(2 * time.Minute / time.Microsecond) // longer ones count as this
	digits  = 3
)

// A Histogram collects latencies. It is safe for concurrent use; goroutines in a hurry have one each.
type Histogram struct {
	mu sync.Mutex
	h  *hdrhistogram.Histogram
}

// NewHistogram returns an empty one.
func NewHistogram() *Histogram {
	return &Histogram{h: hdrhistogram.New(finest, longest, digits)}
}

// Record adds a latency.
func (h *Histogram) Record(d time.Duration) {
	us := min(max(int64((d+time.Microsecond/2)/time.Microsecond), finest), longest)
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.h.RecordValue(us) // fails out of range only
}

// Merge adds another's latencies.
func (h *Histogram) Merge(other *Histogram) {
	other.mu.Lock()
	defer other.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.h.Merge(other.h)
}

// Latency is a distribution, in microseconds.
type Latency struct {
	Count  int64   `json:"count"`
	Mean   float64 `json:"mean"`
	Median int64   `json:"median"`
	P90    int64   `json:"p90"`
	P99    int64   `json:"p99"`
	Max    int64   `json:"max"`
	// Curve is the distribution, from the median of the fastest to the slowest.
	Curve []Quantile `json:"curve"`
}

// A Quantile is a latency that this part of all does not exceed.
type Quantile struct {
	Percent float64 `json:"percent"`
	Micros  int64   `json:"micros"`
}

// curvePercents are the points of a distribution that a plot needs.
var curvePercents = []float64{0, 10, 25, 50, 75, 90, 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.99}

// Latency sums up, or returns nil where nothing was recorded.
func (h *Histogram) Latency() *Latency {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.h.TotalCount()
	if n == 0 {
		return nil
	}
	l := &Latency{
		Count:  n,
		Mean:   h.h.Mean(),
		Median: h.h.ValueAtQuantile(50),
		P90:    h.h.ValueAtQuantile(90),
		P99:    h.h.ValueAtQuantile(99),
		Max:    h.h.Max(),
	}
	for _, p := range curvePercents {
		// A point beyond the slowest of so few says nothing.
		if p > 50 && float64(n)*(100-p)/100 < 1 {
			break
		}
		l.Curve = append(l.Curve, Quantile{p, h.h.ValueAtQuantile(p)})
	}
	l.Curve = append(l.Curve, Quantile{100, l.Max})
	return l
}
