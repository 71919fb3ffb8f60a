package measure

import (
	"sync"
	"time"
)

// A Timeline is what happened when, in slices of one length.
type Timeline struct {
	SliceSeconds float64 `json:"slice_seconds"`
	Slices       []Slice `json:"slices"`
	Events       []Event `json:"events"`
}

// A Slice is what ended in one slice of time.
type Slice struct {
	Pairs     int64 `json:"pairs"`
	Errors    int64 `json:"errors"`
	MaxMicros int64 `json:"max_micros"`
}

// An Event is something that was done to the nodes.
type Event struct {
	Seconds float64 `json:"seconds"`
	What    string  `json:"what"`
}

// A Recorder fills a timeline from its start on. It is safe for concurrent use.
type Recorder struct {
	start time.Time
	slice time.Duration

	mu sync.Mutex
	t  Timeline
}

// NewRecorder starts now. What ends after the last of n slices is not recorded.
func NewRecorder(length time.Duration, n int) *Recorder {
	slice := length / time.Duration(n)
	return &Recorder{
		start: time.Now(),
		slice: slice,
		t:     Timeline{SliceSeconds: slice.Seconds(), Slices: make([]Slice, n)},
	}
}

// Record notes what has just ended, after it took so long.
func (r *Recorder) Record(took time.Duration, err error) {
	i := int(time.Since(r.start) / r.slice)
	r.mu.Lock()
	defer r.mu.Unlock()
	if i >= len(r.t.Slices) {
		return
	}
	s := &r.t.Slices[i]
	if err != nil {
		s.Errors++
	} else {
		s.Pairs++
	}
	s.MaxMicros = max(s.MaxMicros, took.Microseconds())
}

// Event notes what has just been done.
func (r *Recorder) Event(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Events = append(r.t.Events, Event{time.Since(r.start).Seconds(), what})
}

// Timeline is what was recorded.
func (r *Recorder) Timeline() *Timeline {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.t
	return &t
}

// LongestGap is the longest time, in seconds, in which nothing succeeded.
func (t *Timeline) LongestGap() float64 {
	var gap, longest int
	for _, s := range t.Slices {
		if gap++; s.Pairs > 0 {
			gap = 0
		}
		longest = max(longest, gap)
	}
	return float64(longest) * t.SliceSeconds
}
