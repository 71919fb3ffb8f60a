package node

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

const (
	aReply  = "*6\r\n$7\r\ngranted\r\n:12\r\n:30000\r\n$4\r\nme:1\r\n:1\r\n:1795262400123457\r\n"
	aRecord = "*10\r\n$7\r\nsettled\r\n$3\r\none\r\n$3\r\nrun\r\n:0\r\n:30000\r\n:5\r\n:7\r\n:1795262400123457\r\n$0\r\n\r\n:0\r\n"
)

func reading(text string) replies {
	return newReplies(iotest.OneByteReader(strings.NewReader(text)), us)
}

// us asks for a script's reply.
func us() asker { return asker{holder: "me:1"} }

func TestRepliesAreReadOneAfterTheOther(t *testing.T) {
	want := script.Reply{
		Status: script.Granted, Fence: 12, TTL: 30 * time.Second, Holder: "me:1", Count: 1, Now: 1795262400123457,
	}
	resting := "*7\r\n" + strings.TrimPrefix(aReply, "*6\r\n") + ":1500\r\n"
	r := reading(">2\r\n+message\r\n$2\r\nhi\r\n" + aReply + "-ERR no\r\n" + "|1\r\n+ttl\r\n:3600\r\n" + resting + aRecord)
	if o, broken := r.next(); broken != nil || o.err != nil || o.reply != want {
		t.Errorf("got %+v, %v, want %+v", o, broken, want)
	}
	var refused redis.Error
	if o, broken := r.next(); broken != nil || !errors.As(o.err, &refused) || o.err.Error() != "ERR no" {
		t.Errorf("got %+v, %v, want the server's error", o, broken)
	}
	want.Quarantine = 1500 * time.Millisecond
	if o, broken := r.next(); broken != nil || o.err != nil || o.reply != want {
		t.Errorf("got %+v, %v, want %+v", o, broken, want)
	}
	if o, broken := r.next(); broken != nil || o.err != nil || o.record == nil || o.record.Incarnation != "one" || o.record.Nodes != 5 {
		t.Errorf("got %+v, %v, want a record", o, broken)
	}
	if _, broken := r.next(); !errors.Is(broken, io.EOF) {
		t.Errorf("got %v at the end", broken)
	}
}

// Whatever a reply is, the next one is read from where it begins.
func TestOddRepliesAreReadToTheirEnd(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for _, odd := range []string{
		"+OK\r\n", "$-1\r\n", "_\r\n", ":1\r\n", "#t\r\n", ",1.5\r\n", "(123456789012345678901234567890\r\n", "*-1\r\n", "*0\r\n",
		"=7\r\ntxt:abc\r\n", "%1\r\n+a\r\n:1\r\n", "~1\r\n+a\r\n", "*2\r\n*1\r\n+a\r\n$-1\r\n", "$10000\r\n" + long + "\r\n",
		"*6\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n", strings.Replace(aReply, ":12", "$2\r\n12", 1), strings.Replace(aRecord, ":5", "_", 1),
	} {
		r := reading(odd + aReply)
		if o, broken := r.next(); broken != nil || !errors.Is(o.err, errOdd) {
			t.Errorf("%.40q: got %+v, %v, want it to be odd", odd, o, broken)
		}
		if o, broken := r.next(); broken != nil || o.err != nil || o.reply.Status != script.Granted {
			t.Errorf("behind %.40q: got %+v, %v", odd, o, broken)
		}
	}
	r := reading("!21\r\nSYNTAX invalid syntax\r\n-" + long + "\r\n" + aReply)
	for _, want := range []string{"SYNTAX invalid syntax", long} {
		if o, broken := r.next(); broken != nil || o.err == nil || o.err.Error() != want {
			t.Errorf("got %v, %v, want the error %.40q", o.err, broken, want)
		}
	}
	if o, broken := r.next(); broken != nil || o.reply.Status != script.Granted {
		t.Errorf("behind errors: got %+v, %v", o, broken)
	}
}

func TestWhatIsNoReplyEndsTheConnection(t *testing.T) {
	for _, text := range []string{
		"HTTP/1.1 400 Bad Request\r\n", "\r\n", "x\r\n", ":1\n", ":one\r\n", "$x\r\n", "$9999999999\r\n", "*9999999999\r\n",
		strings.Repeat("*1\r\n", 100) + "+a\r\n", aReply[:len(aReply)-3], "$5\r\nab",
	} {
		r := reading(text)
		if o, broken := r.next(); broken == nil {
			t.Errorf("%.40q: got %+v", text, o)
		}
	}
}

// The usual replies leave nothing behind.
func TestUsualRepliesAreReadWithoutAllocations(t *testing.T) {
	in := strings.NewReader("")
	r := newReplies(in, us)
	if n := testing.AllocsPerRun(100, func() {
		in.Reset(aReply)
		if o, broken := r.next(); broken != nil || o.reply.Holder != "me:1" {
			t.Fatalf("got %+v, %v", o, broken)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzReplies(f *testing.F) {
	f.Add([]byte(aReply + aRecord))
	f.Add([]byte("*2\r\n%1\r\n+a\r\n:1\r\n$-1\r\n-ERR x\r\n|1\r\n+a\r\n:1\r\n!3\r\nERR\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newReplies(bytes.NewReader(data), us)
		for range len(data) + 1 { // every reply takes a byte at least
			o, broken := r.next()
			switch {
			case broken != nil:
				return
			case o.err == nil && o.record == nil && o.reply.TTL < script.NoExpiry:
				t.Errorf("read %+v", o)
			}
		}
		t.Error("more replies than bytes")
	})
}
