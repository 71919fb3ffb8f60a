package script

import "strconv"

// A wire takes the words of a command as they go over a connection: each with its length before it.
type wire struct {
	text  []byte
	words int
}

// word adds one word, made of parts.
func (w *wire) word(parts ...string) {
	n := 0
	for _, part := range parts {
		n += len(part)
	}
	w.text = appendSize(w.text, '$', n)
	for _, part := range parts {
		w.text = append(w.text, part...)
	}
	w.end()
}

// number adds a number, which is a word like others.
func (w *wire) number(n int64) {
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], n, 10)
	w.text = append(appendSize(w.text, '$', len(text)), text...)
	w.end()
}

func (w *wire) end() {
	w.text = append(w.text, '\r', '\n')
	w.words++
}

func appendSize(text []byte, kind byte, n int) []byte {
	text = strconv.AppendInt(append(text, kind), int64(n), 10)
	return append(text, '\r', '\n')
}
