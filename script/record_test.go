package script_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/redquorum/redquorum/script"
)

// answered is a record as go-redis hands it over.
func answered() []any {
	return []any{"settled", "one", "run", int64(1), int64(30_000), int64(5), int64(2), noon, "allkeys-lru", int64(5000)}
}

func TestParseRecord(t *testing.T) {
	got, err := script.ParseRecord(answered())
	want := script.Record{
		Standing: script.StandingSettled, Incarnation: "one", Run: "run", Quarantine: time.Millisecond, TTL: ttl, Nodes: 5,
		Age: 2 * time.Microsecond, Now: noon, Evicts: "allkeys-lru", Shortened: 5 * time.Second,
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	fields := answered()
	for _, age := range []int64{-1, math.MinInt64} {
		fields[6] = age
		if got, err := script.ParseRecord(fields); err != nil || got.Age >= 0 {
			t.Errorf("began in %d us: got %+v, %v", -age, got, err)
		}
	}
	for _, long := range []int64{math.MaxInt64, math.MaxInt64 / 1000, math.MaxInt64/1000 + 1} {
		fields := answered()
		fields[3], fields[4], fields[6] = long, long, long
		if got, err := script.ParseRecord(fields); err != nil || got.Quarantine <= 0 || got.TTL <= 0 || got.Age <= 0 {
			t.Errorf("%d: got %+v, %v, want what is very long", long, got, err)
		}
	}
}

func TestRecordOfAnotherShape(t *testing.T) {
	for i := range answered() {
		for _, odd := range []any{nil, 1, 1.5, true, []any{}, errors.New("x"), []byte("settled"), map[any]any{}} {
			fields := answered()
			fields[i] = odd
			if got, err := script.ParseRecord(fields); err == nil || got != (script.Record{}) {
				t.Errorf("value %d is %T: got %+v, %v, want an error", i, odd, got, err)
			}
		}
	}
	for _, v := range []any{
		nil, "OK", int64(1), []any{}, answered()[:9], append(answered(), "x"), []string{"settled"}, map[any]any{"settled": 1},
		[]any{"granted", noon, int64(30_000), "me:1", int64(1), noon}, // a reply
	} {
		if got, err := script.ParseRecord(v); err == nil {
			t.Errorf("%#v: got %+v, want an error", v, got)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	number := []byte{0, 0, 0, 0, 0, 0, 0, 0, 7}
	seed := []byte{10<<3 | 7}
	for _, part := range [][]byte{{1<<3 | 2, 's'}, {1<<3 | 2, 'i'}, {2}, number, number, number, number, number, {2}, number} {
		seed = append(seed, part...)
	}
	v, _ := decode(seed, 0)
	if _, err := script.ParseRecord(v); err != nil {
		f.Fatalf("the seed is %v: %v", v, err)
	}
	f.Add(seed)
	f.Add([]byte{7})
	f.Add([]byte{10<<3 | 7, 4, 5, 6, 7, 0, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		v, _ := decode(data, 0)
		got, err := script.ParseRecord(v)
		if err != nil {
			if got != (script.Record{}) {
				t.Errorf("%v with %+v", err, got)
			}
			return
		}
		fields, ok := v.([]any)
		if !ok || len(fields) != 10 {
			t.Fatalf("took %v for a record", v)
		}
		if string(got.Standing) != fields[0] || got.Incarnation != fields[1] || got.Run != fields[2] || got.Now != fields[7] ||
			got.Evicts != fields[8] || got.Quarantine < script.NoExpiry || got.TTL < script.NoExpiry {
			t.Errorf("read %v as %+v", v, got)
		}
	})
}
