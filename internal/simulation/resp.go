package simulation

import (
	"bytes"
	"errors"
	"strconv"
)

// What a command answers is a Go value: nil, int64, string (bulk), status, failure, []any, pairs or push.
type (
	status  string // +OK
	failure string // -ERR ...
	pairs   []any  // a map in RESP3, a flat array in RESP2
	push    []any  // a message that nobody asked for
)

var errProtocol = errors.New("simulation: not a RESP command")

// readCommand takes one command off the front of what has arrived. used is 0 if it is not complete yet.
func readCommand(in []byte) (args []string, used int, err error) {
	count, at, err := readSize(in, 0, '*')
	if at == 0 || err != nil {
		return nil, 0, err
	}
	args = make([]string, 0, count)
	for range count {
		size, next, err := readSize(in, at, '$')
		if next == 0 || err != nil {
			return nil, 0, err
		}
		if len(in) < next+size+2 {
			return nil, 0, nil
		}
		args = append(args, string(in[next:next+size]))
		at = next + size + 2
	}
	return args, at, nil
}

// readSize reads a line such as $5 and returns the number and where the next line begins; 0 if there is no whole line.
func readSize(in []byte, at int, kind byte) (size, next int, err error) {
	if at >= len(in) {
		return 0, 0, nil
	}
	if in[at] != kind {
		return 0, 0, errProtocol
	}
	end := bytes.IndexByte(in[at:], '\n')
	if end < 0 {
		return 0, 0, nil
	}
	size, err = strconv.Atoi(string(in[at+1 : at+end-1]))
	if err != nil || size < 0 {
		return 0, 0, errProtocol
	}
	return size, at + end + 1, nil
}

// writeReply appends a reply in the protocol that the connection speaks.
func writeReply(out []byte, reply any, resp3 bool) []byte {
	switch v := reply.(type) {
	case int64:
		out = append(out, ':')
		out = strconv.AppendInt(out, v, 10)
		return append(out, '\r', '\n')
	case string:
		out = writeHeader(out, '$', len(v))
		out = append(out, v...)
		return append(out, '\r', '\n')
	case status:
		return append(append(append(out, '+'), v...), '\r', '\n')
	case failure:
		return append(append(append(out, '-'), v...), '\r', '\n')
	case []any:
		return writeItems(writeHeader(out, '*', len(v)), v, resp3)
	case pairs:
		if resp3 {
			return writeItems(writeHeader(out, '%', len(v)/2), v, resp3)
		}
		return writeItems(writeHeader(out, '*', len(v)), v, resp3)
	case push:
		if resp3 {
			return writeItems(writeHeader(out, '>', len(v)), v, resp3)
		}
		return writeItems(writeHeader(out, '*', len(v)), v, resp3)
	}
	if resp3 {
		return append(out, "_\r\n"...)
	}
	return append(out, "$-1\r\n"...)
}

func writeHeader(out []byte, kind byte, n int) []byte {
	out = append(out, kind)
	out = strconv.AppendInt(out, int64(n), 10)
	return append(out, '\r', '\n')
}

func writeItems(out []byte, items []any, resp3 bool) []byte {
	for _, item := range items {
		out = writeReply(out, item, resp3)
	}
	return out
}
