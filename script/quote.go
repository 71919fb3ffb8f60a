package script

import (
	"fmt"
	"strings"
)

// Quote returns a line of a request's script as it ran: with the keys and arguments in place of their numbers, but for
// those of the seal. It is for errors, since Redis tells no more than the line. "" if there is no such line.
func Quote(req Request, line int) string {
	lines := strings.Split(req.Script().Source, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	text, _, _ := strings.Cut(lines[line-1], "--") // a comment
	var known []string
	for i, key := range req.Keys() {
		known = append(known, fmt.Sprintf("KEYS[%d]", i+1), "'"+key+"'")
	}
	first := 2 // behind the seal
	if guarded(req) {
		first = 3
	}
	for i, arg := range req.Args() {
		known = append(known, fmt.Sprintf("ARGV[%d]", i+first), fmt.Sprintf("'%v'", arg))
	}
	return strings.TrimSpace(strings.NewReplacer(known...).Replace(text))
}
