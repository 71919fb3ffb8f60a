package script_test

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redquorum/redquorum/script"
)

// sent reads a command as a server does.
func sent(t *testing.T, text []byte) (words []string) {
	t.Helper()
	r := bufio.NewReader(strings.NewReader(string(text)))
	size := func(kind byte) int {
		line, err := r.ReadString('\n')
		if err != nil || line[0] != kind || !strings.HasSuffix(line, "\r\n") {
			t.Fatalf("%q in %q: %v", line, text, err)
		}
		n, err := strconv.Atoi(line[1 : len(line)-2])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range size('*') {
		word := make([]byte, size('$')+2)
		if _, err := io.ReadFull(r, word); err != nil {
			t.Fatal(err)
		}
		words = append(words, string(word[:len(word)-2]))
	}
	if rest, _ := io.ReadAll(r); len(rest) > 0 {
		t.Errorf("%q comes behind the command", rest)
	}
	return words
}

// On the wire a request is the words of its command, with the seal where the scripts look for it.
func TestPreparedRequestIsItsCommand(t *testing.T) {
	seal := script.Seal{Last: noon, Incarnation: "one"}
	for _, req := range append(aboutNodes, everyRequest...) {
		p := script.Prepare(req)
		for _, source := range []bool{false, true} {
			words := sent(t, p.Append([]byte("*1\r\n$4\r\nPING\r\n")[:0], seal, source))
			var want []string
			for _, word := range p.Command(seal, source) {
				want = append(want, fmt.Sprint(word))
			}
			if !slices.Equal(words, want) {
				t.Errorf("%s goes over the wire as %q, and its words are %q", req.Script().Name, words, want)
			}
			head := []string{"EVALSHA", req.Script().SHA}
			if source {
				head = []string{"EVAL", req.Script().Source}
			}
			keys, err := strconv.Atoi(words[2])
			if !slices.Equal(words[:2], head) || err != nil || words[3+keys] != fmt.Sprint(noon) {
				t.Errorf("%s begins with %q and %s keys, and the seal is %s", req.Script().Name, words[:2], words[2], words[3+keys])
			}
		}
	}
	p := script.Prepare(anAcquire)
	if first := string(p.Append(nil, seal, false)); first != string(p.Append(nil, seal, false)) || p.Holder() != us {
		t.Errorf("prepared for %q, and twice it is not the same", p.Holder())
	}
}

func TestPreparedRequestsAllocateNoMoreThanTwice(t *testing.T) {
	req := script.Request(anAcquire)
	out := make([]byte, 0, 1024)
	var p *script.Prepared
	if n := testing.AllocsPerRun(100, func() { p = script.Prepare(req) }); n > 2 {
		t.Errorf("%v allocations to prepare a request", n)
	}
	if n := testing.AllocsPerRun(100, func() { out = p.Append(out[:0], script.Seal{Last: noon}, false) }); n > 0 {
		t.Errorf("%v allocations to send one", n)
	}
}
