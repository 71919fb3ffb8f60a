package script

import "slices"

// A Prepared request is the command that runs it, put together once for all nodes that are asked the same: only the seal is
// each node's own.
type Prepared struct {
	Request
	words []any // EVALSHA name keys arguments, with room for the seal
	seal  int   // where that is
}

// Prepare puts a request together.
func Prepare(req Request) *Prepared {
	keys, args := req.Keys(), req.Args()
	p := &Prepared{Request: req, words: make([]any, 0, 3+len(keys)+2+len(args))}
	p.words = append(p.words, "EVALSHA", req.Script().SHA, len(keys))
	for _, key := range keys {
		p.words = append(p.words, key)
	}
	p.seal = len(p.words)
	p.words = append(p.words, int64(0))
	if guarded(req) {
		p.words = append(p.words, "")
	}
	p.words = append(p.words, args...)
	return p
}

// Command returns the words of the command, sealed. They share the seal, which must not change while they are in use, and
// cost one allocation.
func (p *Prepared) Command(seal *Seal) []any {
	words := slices.Clone(p.words)
	words[p.seal] = &seal.Last
	if guarded(p.Request) {
		words[p.seal+1] = &seal.Incarnation
	}
	return words
}

// CommandWithSource is Command for a server that does not know the script's name.
func (p *Prepared) CommandWithSource(seal *Seal) []any {
	words := p.Command(seal)
	words[0], words[1] = "EVAL", p.Script().Source
	return words
}
