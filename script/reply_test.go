package script_test

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/redquorum/redquorum/script"
)

func TestReplyTTL(t *testing.T) {
	for pttl, want := range map[int64]time.Duration{
		-2: 0, -1: script.NoExpiry, 0: 0, 1: time.Millisecond, 30_000: ttl,
		-3: 0, math.MinInt64: 0,
		math.MaxInt64 / 1_000_000:   math.MaxInt64 / 1_000_000 * time.Millisecond,
		math.MaxInt64/1_000_000 + 1: math.MaxInt64,
		math.MaxInt64:               math.MaxInt64,
	} {
		got, err := script.ParseReply([]any{"held", int64(1), pttl, "h", int64(1), int64(1)})
		if err != nil || got.TTL != want {
			t.Errorf("PTTL %d: %v, %v, want %v", pttl, got.TTL, err, want)
		}
	}
}

func TestReplyOfAnotherShape(t *testing.T) {
	good := func() []any { return []any{"held", int64(1), int64(2), "h", int64(1), int64(3)} }
	if _, err := script.ParseReply(good()); err != nil {
		t.Fatal(err)
	}
	for i := range good() {
		for _, odd := range []any{nil, 1, 1.5, true, []any{}, errors.New("x"), []byte("held"), map[any]any{}} {
			fields := good()
			fields[i] = odd
			if got, err := script.ParseReply(fields); err == nil {
				t.Errorf("value %d is %T: got %+v, want an error", i, odd, got)
			}
		}
	}
	for _, v := range []any{nil, "OK", int64(1), []any{}, good()[:5], append(good(), int64(1), int64(1)), append(good(), "1"), []string{"held"}, map[any]any{"held": 1}} {
		if got, err := script.ParseReply(v); err == nil {
			t.Errorf("%#v: got %+v, want an error", v, got)
		}
	}
}

// decode makes of any bytes a value as go-redis might hand it over.
func decode(data []byte, depth int) (any, []byte) {
	if len(data) == 0 {
		return nil, nil
	}
	kind, data := data[0], data[1:]
	switch kind % 8 {
	case 0, 1:
		if len(data) < 8 {
			return int64(len(data)), nil
		}
		return int64(binary.BigEndian.Uint64(data)), data[8:]
	case 2, 3:
		n := min(int(kind>>3), len(data))
		return string(data[:n]), data[n:]
	case 4:
		return math.NaN(), data
	case 5:
		return kind > 127, data
	case 6:
		return errors.New("ERR"), data
	}
	list := []any{}
	for range int(kind >> 3) {
		if depth > 3 || len(data) == 0 {
			break
		}
		var v any
		v, data = decode(data, depth+1)
		list = append(list, v)
	}
	return list, data
}

func FuzzParseReply(f *testing.F) {
	number := func(n int64) []byte { return binary.BigEndian.AppendUint64([]byte{0}, uint64(n)) }
	seed := []byte{6<<3 | 7, 4<<3 | 2, 'h', 'e', 'l', 'd'}
	for _, part := range [][]byte{number(1), number(-2), {1<<3 | 2, 'h'}, number(1), number(noon)} {
		seed = append(seed, part...)
	}
	if v, _ := decode(seed, 0); v.([]any)[0] != "held" || len(v.([]any)) != 6 {
		f.Fatalf("the seed is %v", v)
	}
	f.Add(seed)
	f.Add([]byte{7})
	f.Add([]byte{6<<3 | 7, 4, 5, 6, 7, 0, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		v, _ := decode(data, 0)
		got, err := script.ParseReply(v)
		if err != nil {
			if got != (script.Reply{}) {
				t.Errorf("%v with %+v", err, got)
			}
			return
		}
		fields, ok := v.([]any)
		if !ok || len(fields) != 6 && len(fields) != 7 {
			t.Fatalf("took %v for a reply", v)
		}
		if got.TTL < script.NoExpiry || string(got.Status) != fields[0] || got.Fence != fields[1] || got.Holder != fields[3] || got.Now != fields[5] {
			t.Errorf("read %v as %+v", v, got)
		}
	})
}
