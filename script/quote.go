package script

import (
	"fmt"
	"strconv"
	"strings"
)

// Keys are the keys that the request names.
func (p *Prepared) Keys() []string {
	keys, _ := p.named()
	return keys
}

// named are the keys and the arguments, those of the seal included.
func (p *Prepared) named() (keys, args []string) {
	words := p.Command(Seal{}, false)[2:] // behind EVALSHA and the script's name
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = fmt.Sprint(word)
	}
	n, _ := strconv.Atoi(texts[0]) // we wrote it
	return texts[1 : 1+n], texts[1+n:]
}

// Quote returns a line of a request's script as it ran: with the keys and arguments in place of their numbers, but for
// those of the seal. It is for errors, since Redis tells no more than the line. "" if there is no such line.
func (p *Prepared) Quote(line int) string {
	lines := strings.Split(p.Script().Source, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	text, _, _ := strings.Cut(lines[line-1], "--") // a comment
	keys, args := p.named()
	var known []string
	for i, key := range keys {
		known = append(known, fmt.Sprintf("KEYS[%d]", i+1), "'"+key+"'")
	}
	sealed := 1
	if guarded(p.Request) {
		sealed = 2
	}
	for i, arg := range args[sealed:] {
		known = append(known, fmt.Sprintf("ARGV[%d]", sealed+i+1), "'"+arg+"'")
	}
	return strings.TrimSpace(strings.NewReplacer(known...).Replace(text))
}
