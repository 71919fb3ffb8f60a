package clock

import (
	"testing"
	"time"
)

func BenchmarkTimeNow(b *testing.B) {
	for b.Loop() {
		time.Now()
	}
}

func benchmarkNow(b *testing.B, c Clock) {
	b.ReportAllocs()
	for b.Loop() {
		c.Now()
	}
}

func BenchmarkBootNow(b *testing.B) {
	c, err := NewBoot()
	if err != nil {
		b.Skip(err)
	}
	benchmarkNow(b, c)
}

func BenchmarkPortableNow(b *testing.B) { benchmarkNow(b, NewPortable()) }

func BenchmarkPortableNowParallel(b *testing.B) {
	c := NewPortable()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Now()
		}
	})
}

func BenchmarkCachedStart(b *testing.B) {
	c := NewCached(System(), time.Millisecond)
	defer c.Close()
	for b.Loop() {
		c.Start()
	}
}

// The watchdog's use: an alarm that is far from due is moved.
func benchmarkAlarmSet(b *testing.B, c Clock) {
	a := c.NewAlarm()
	defer a.Stop()
	at := c.Now().Add(time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		at = at.Add(1)
		a.Set(at)
	}
}

func BenchmarkBootAlarmSet(b *testing.B) {
	c, err := NewBoot()
	if err != nil {
		b.Skip(err)
	}
	benchmarkAlarmSet(b, c)
}

func BenchmarkPortableAlarmSet(b *testing.B) { benchmarkAlarmSet(b, NewPortable()) }

func BenchmarkDrift(b *testing.B) {
	for b.Loop() {
		Drift(30*time.Second, 0.01, 0)
	}
}
