package measure_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redquorum/redquorum/bench/internal/measure"
)

func TestHistogramCountsWhatItWasGiven(t *testing.T) {
	a, b := measure.NewHistogram(), measure.NewHistogram()
	for i := range 1000 {
		h := a
		if i%2 == 0 {
			h = b
		}
		h.Record(time.Duration(i+1) * time.Microsecond)
	}
	a.Merge(b)
	l := a.Latency()
	if l.Count != 1000 || l.Median != 500 || l.P90 != 900 || l.P99 != 990 || l.Max != 1000 {
		t.Errorf("%+v", l)
	}
	for i := 1; i < len(l.Curve); i++ {
		if l.Curve[i].Micros < l.Curve[i-1].Micros || l.Curve[i].Percent <= l.Curve[i-1].Percent {
			t.Errorf("the curve falls at %v", l.Curve[i])
		}
	}
}

func TestHistogramTakesAnything(t *testing.T) {
	h := measure.NewHistogram()
	if h.Latency() != nil {
		t.Error("an empty one has latencies")
	}
	for _, d := range []time.Duration{-1, 0, 1, time.Hour} {
		h.Record(d)
	}
	if l := h.Latency(); l.Count != 4 || l.Max < int64(time.Minute/time.Microsecond) {
		t.Errorf("%+v", l)
	}
}

func TestTimeline(t *testing.T) {
	r := measure.NewRecorder(time.Hour, 10)
	r.Record(3*time.Millisecond, nil)
	r.Record(2*time.Millisecond, errors.New("no"))
	r.Event("done")
	tl := r.Timeline()
	if len(tl.Slices) != 10 || tl.SliceSeconds != 360 || len(tl.Events) != 1 {
		t.Fatalf("%+v", tl)
	}
	if s := tl.Slices[0]; s != (measure.Slice{Pairs: 1, Errors: 1, MaxMicros: 3000}) {
		t.Errorf("%+v", s)
	}
	if gap := tl.LongestGap(); gap != 9*360 {
		t.Errorf("a gap of %v", gap)
	}
	late := measure.NewRecorder(time.Nanosecond*10, 10)
	time.Sleep(time.Millisecond)
	late.Record(0, nil) // beyond the last slice: dropped
	if gap := late.Timeline().LongestGap(); gap != 1e-8 {
		t.Errorf("a gap of %v", gap)
	}
}

func TestCost(t *testing.T) {
	c := measure.Start()
	r := measure.Result{}
	c.Stop(&r)
	if r.PerSecond != 0 {
		t.Error("a rate of nothing")
	}
	r.Pairs = 10
	c.Stop(&r)
	if r.PerSecond <= 0 || r.Seconds <= 0 {
		t.Errorf("%+v", r)
	}
	if measure.InUse() == 0 {
		t.Error("no memory in use")
	}
}
