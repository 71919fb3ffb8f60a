package node

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

// replies reads what scripts answer, one after the other, and allocates nothing for the usual ones. It reads any other
// value of either version of the protocol (https://redis.io/docs/latest/develop/reference/protocol-spec/) as well, and says
// that it is odd.
type replies struct {
	in *bufio.Reader
	// asker tells who is answered next.
	asker func() asker
}

// An asker is who asked.
type asker struct {
	holder string // in whose name: most replies that name one name this one
	plain  bool   // for anything but a script's reply
}

func newReplies(from io.Reader, who func() asker) replies {
	return replies{bufio.NewReaderSize(from, 4<<10), who}
}

// appendCommand appends a command to what goes over a connection.
func appendCommand(out []byte, words []string) []byte {
	out = strconv.AppendInt(append(out, '*'), int64(len(words)), 10)
	for _, word := range words {
		out = strconv.AppendInt(append(out, "\r\n$"...), int64(len(word)), 10)
		out = append(append(out, "\r\n"...), word...)
	}
	return append(out, "\r\n"...)
}

// A refusal is an error that the server answered with.
type refusal string

func (r refusal) Error() string { return string(r) }

// RedisError makes it one of go-redis' errors.
func (refusal) RedisError() {}

var _ redis.Error = refusal("")

// A value is one value of a reply.
type value struct {
	kind byte // '$' a text, ':' a number, '-' an error, another one anything else
	text string
	n    int64
}

// errProtocol is a server that does not speak Redis' protocol.
var errProtocol = errors.New("not a reply of Redis")

const (
	// longest is how many bytes a text may have, and deepest how deep lists may be nested, before it is no reply of ours.
	longest = 1 << 20
	deepest = 8
)

// next reads the next reply. The outcome's error says that it is one, or odd; broken, that nothing can be read any more.
func (r replies) next() (o outcome, broken error) {
	for {
		kind, n, line, broken := r.head()
		switch {
		case broken != nil:
			return o, broken
		case kind != '>' && kind != '|' && kind != '-' && kind != '!' && r.asker().plain:
			return r.plain(kind, n, line)
		case kind == '*' && (n == 6 || n == 7):
			return r.reply(int(n))
		case kind == '*' && n == 10:
			return r.record()
		}
		v, broken := r.rest(kind, n, line, copied, 0)
		switch {
		case broken != nil:
			return o, broken
		case kind == '>', kind == '|': // a message that nobody asked for; what is told besides
		case v.kind == '-':
			return outcome{err: refusal(v.text)}, nil
		default:
			return outcome{err: fmt.Errorf("%w: a value of the kind %q", errOdd, kind)}, nil
		}
	}
}

// plain reads any value; of a list it keeps what is in it.
func (r replies) plain(kind byte, n int64, line []byte) (o outcome, broken error) {
	switch kind {
	case '%':
		n *= 2
	case '*', '~':
	default:
		v, broken := r.rest(kind, n, line, copied, 0)
		return outcome{values: []value{v}}, broken
	}
	if n > longest {
		return o, errProtocol
	}
	for range max(0, n) {
		kind, size, line, broken := r.head()
		if broken != nil {
			return o, broken
		}
		v, broken := r.rest(kind, size, line, copied, 1)
		if broken != nil {
			return o, broken
		}
		o.values = append(o.values, v)
	}
	return o, nil
}

// reply reads the values of what a script answers about a lock.
func (r replies) reply(n int) (o outcome, broken error) {
	var v [7]value
	if o.err, broken = r.values(v[:n], "$::$:::", script.KnownStatus, r.holder); o.err != nil || broken != nil {
		return o, broken
	}
	o.reply = script.Values{
		Status: v[0].text, Fence: v[1].n, PTTL: v[2].n, Holder: v[3].text, Count: v[4].n, Now: v[5].n, Quarantine: v[6].n,
	}.Reply()
	return o, nil
}

// record reads the values of what a check answers.
func (r replies) record() (o outcome, broken error) {
	var v [10]value
	const kinds = "$$$:::::$:"
	if o.err, broken = r.values(v[:], kinds, copied, copied); o.err != nil || broken != nil {
		return o, broken
	}
	all := make([]any, len(v))
	for i := range v {
		all[i] = v[i].n
		if kinds[i] == '$' {
			all[i] = v[i].text
		}
	}
	record, err := script.ParseRecord(all)
	return outcome{record: &record, err: err}, nil
}

// values reads the values of a list, of which each has to be of a certain kind. first and holder keep the texts in the first
// and the fourth place.
func (r replies) values(v []value, kinds string, first, holder func([]byte) string) (odd, broken error) {
	for i := range v {
		kind, size, line, broken := r.head()
		if broken != nil {
			return nil, broken
		}
		keep := copied
		switch i {
		case 0:
			keep = first
		case 3:
			keep = holder
		}
		if v[i], broken = r.rest(kind, size, line, keep, 1); broken != nil {
			return nil, broken
		}
		if v[i].kind != kinds[i] && odd == nil {
			odd = fmt.Errorf("%w: value %d of %d is of the kind %q", errOdd, i+1, len(v), v[i].kind)
		}
	}
	return odd, nil
}

// copied keeps a text as a copy, and holder as the asker's if that is who it names.
func copied(text []byte) string { return string(text) }

func (r replies) holder(text []byte) string {
	if asker := r.asker().holder; asker == string(text) {
		return asker
	}
	return string(text)
}

// head reads the line with which a value begins: its kind, and a number where the kind has one.
func (r replies) head() (kind byte, n int64, line []byte, broken error) {
	line, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		begun := bytes.Clone(line)
		line, err = r.in.ReadBytes('\n')
		line = append(begun, line...)
	}
	if err != nil {
		return 0, 0, nil, err
	}
	if len(line) < len("_\r\n") || line[len(line)-2] != '\r' {
		return 0, 0, nil, errProtocol
	}
	kind, line = line[0], line[1:len(line)-2]
	switch kind {
	case ':', '$', '*', '~', '>', '%', '=', '!', '|':
		if n, err = strconv.ParseInt(string(line), 10, 64); err != nil {
			return 0, 0, nil, errProtocol
		}
	case '+', '-', '_', '#', ',', '(':
	default:
		return 0, 0, nil, errProtocol
	}
	return kind, n, line, nil
}

// rest reads what follows after the first line.
func (r replies) rest(kind byte, n int64, line []byte, keep func([]byte) string, depth int) (v value, broken error) {
	v = value{kind: kind, n: n}
	switch kind {
	case '-':
		v.text = string(line)
	case '+':
		v.kind, v.text = '$', keep(line)
	case '$', '=', '!':
		if n < 0 {
			v.kind = '_'
			return v, nil
		}
		if kind == '!' {
			v.kind = '-'
		}
		v.text, broken = r.text(n, keep)
	case '%', '|':
		broken = r.skip(2*n, depth)
	case '*', '~', '>':
		broken = r.skip(n, depth)
	}
	return v, broken
}

// text reads a text of so many bytes.
func (r replies) text(n int64, keep func([]byte) string) (string, error) {
	if n > longest {
		return "", errProtocol
	}
	size := int(n) + len("\r\n")
	if size > r.in.Size() {
		long := make([]byte, size)
		if _, err := io.ReadFull(r.in, long); err != nil {
			return "", err
		}
		return keep(long[:n]), nil
	}
	text, err := r.in.Peek(size)
	if err != nil {
		return "", err
	}
	kept := keep(text[:n])
	_, err = r.in.Discard(size)
	return kept, err
}

// skip reads so many values and forgets them.
func (r replies) skip(n int64, depth int) error {
	if depth == deepest || n > longest {
		return errProtocol
	}
	for range max(0, n) {
		kind, size, line, err := r.head()
		if err == nil {
			_, err = r.rest(kind, size, line, func([]byte) string { return "" }, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
