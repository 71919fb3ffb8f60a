package script

import (
	"bytes"
	"strconv"
)

// A Prepared request is the command that runs it, put together once for all nodes that are asked the same: only the seal is
// each node's own.
type Prepared struct {
	Request
	wire     // the words behind the script's name, without the seal
	seal int // where that goes
}

// Holder is in whose name the request is made; empty if in nobody's.
func (p *Prepared) Holder() string {
	switch r := p.Request.(type) {
	case Acquire:
		return r.Holder
	case Renew:
		return r.Holder
	case Raise:
		return r.Holder
	case Release:
		return r.Holder
	}
	return ""
}

// usual is room for the words of most requests.
const usual = 384

// Prepare puts a request together.
func Prepare(req Request) *Prepared {
	p := &Prepared{Request: req, wire: wire{text: make([]byte, 0, usual)}}
	p.number(0) // how many keys there are is known behind them; no script has more than nine
	count := len(p.text) - len("0\r\n")
	req.keys(&p.wire)
	p.text[count] = '0' + byte(p.words-1)
	p.seal = len(p.text)
	req.args(&p.wire)
	return p
}

// Append appends the command to what goes over a connection. With source it is for a server that does not know the script's
// name.
func (p *Prepared) Append(out []byte, seal Seal, source bool) []byte {
	head := wire{text: out}
	sealed := 1
	if guarded(p.Request) {
		sealed = 2
	}
	head.text = appendSize(head.text, '*', 2+p.words+sealed)
	if s := p.Script(); source {
		head.word("EVAL")
		head.word(s.Source)
	} else {
		head.word("EVALSHA")
		head.word(s.SHA)
	}
	head.text = append(head.text, p.text[:p.seal]...)
	head.number(seal.Last)
	if sealed == 2 {
		head.word(seal.Incarnation)
	}
	return append(head.text, p.text[p.seal:]...)
}

// Command returns the words of the command, for a client that puts them on the wire itself.
func (p *Prepared) Command(seal Seal, source bool) []any {
	text := p.Append(nil, seal, source)
	_, text, _ = bytes.Cut(text, newline) // how many there are
	var words []any
	for len(text) > 0 {
		size, rest, _ := bytes.Cut(text, newline)
		n, _ := strconv.Atoi(string(size[1:])) // we wrote it
		words = append(words, string(rest[:n]))
		text = rest[n+len(newline):]
	}
	return words
}

var newline = []byte("\r\n")
