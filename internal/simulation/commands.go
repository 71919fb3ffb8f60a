package simulation

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	errWrongType  = failure("WRONGTYPE Operation against a key holding the wrong kind of value")
	errNotInteger = failure("ERR value is not an integer or out of range")
	errSyntax     = failure("ERR syntax error")
)

// command is one that works on data, from a connection and from a script alike.
type command struct {
	least int // arguments, its name included
	run   func(n *Node, args []string) any
}

var commands map[string]command

func init() { // a literal would refer to itself
	commands = map[string]command{
		"DEL":        {2, (*Node).del},
		"EXISTS":     {2, (*Node).exists},
		"TYPE":       {2, (*Node).typeOf},
		"GET":        {2, (*Node).get},
		"SET":        {3, (*Node).set},
		"PTTL":       {2, (*Node).pttl},
		"PEXPIRE":    {3, (*Node).pexpire},
		"HGET":       {3, (*Node).hget},
		"HSET":       {4, (*Node).hset},
		"HDEL":       {3, (*Node).hdel},
		"HMGET":      {3, (*Node).hmget},
		"HLEN":       {2, (*Node).hlen},
		"HRANDFIELD": {3, (*Node).hrandfield},
		"HGETALL":    {2, (*Node).hgetall},
		"HEXISTS":    {3, (*Node).hexists},
		"PUBLISH":    {3, (*Node).publish},
		"PUBSUB":     {2, (*Node).pubsub},
		"TIME":       {1, (*Node).time},
		"PING":       {1, (*Node).ping},
		"INFO":       {1, (*Node).info},
		"CONFIG":     {3, (*Node).config},
		"FLUSHALL":   {1, (*Node).flushall},
	}
}

// do runs a data command that came from a connection.
func (n *Node) do(args []string) any {
	c, known := find(args[0])
	switch {
	case !known:
		text := fmt.Sprintf("ERR unknown command '%s', with args beginning with: ", args[0])
		for _, arg := range args[1:] {
			text += "'" + arg + "' "
		}
		return failure(text)
	case len(args) < c.least:
		return failure(fmt.Sprintf("ERR wrong number of arguments for '%s' command", strings.ToLower(args[0])))
	}
	return c.run(n, args)
}

// call runs one that came from a script, to which Redis says the same things in other words.
func (n *Node) call(args []string) any {
	c, known := find(args[0])
	switch {
	case !known:
		return failure("ERR Unknown Redis command called from script")
	case len(args) < c.least:
		return failure("ERR Wrong number of args calling Redis command from script")
	}
	return c.run(n, args)
}

func find(name string) (command, bool) {
	c, ok := commands[name]
	if !ok {
		c, ok = commands[strings.ToUpper(name)]
	}
	return c, ok
}

func (n *Node) at(key string) *value { return n.data.get(key, n.millis()) }

// hashAt returns the hash at a key; nil if there is none.
func (n *Node) hashAt(key string) (*value, failure) {
	v := n.at(key)
	if v != nil && v.hash == nil {
		return nil, errWrongType
	}
	return v, ""
}

func (n *Node) del(args []string) any {
	gone := int64(0)
	for _, key := range args[1:] {
		if n.at(key) != nil {
			delete(n.data, key)
			gone++
		}
	}
	return gone
}

func (n *Node) exists(args []string) any {
	there := int64(0)
	for _, key := range args[1:] {
		if n.at(key) != nil {
			there++
		}
	}
	return there
}

func (n *Node) typeOf(args []string) any {
	if v := n.at(args[1]); v != nil {
		return status(v.kind())
	}
	return status("none")
}

func (n *Node) get(args []string) any {
	switch v := n.at(args[1]); {
	case v == nil:
		return nil
	case v.hash != nil:
		return errWrongType
	default:
		return v.text
	}
}

func (n *Node) set(args []string) any {
	v := &value{text: args[2]}
	for i := 3; i < len(args); i++ {
		option := strings.ToUpper(args[i])
		switch {
		case option == "KEEPTTL":
			if old := n.at(args[1]); old != nil {
				v.expires = old.expires
			}
		case option == "NX":
			if n.at(args[1]) != nil {
				return nil
			}
		case (option == "PX" || option == "EX") && i+1 < len(args):
			i++
			d, err := strconv.ParseInt(args[i], 10, 64)
			if err != nil {
				return errNotInteger
			}
			if d <= 0 {
				return failure("ERR invalid expire time in 'set' command")
			}
			if option == "EX" {
				d *= 1000
			}
			v.expires = n.millis() + d
		default:
			return errSyntax
		}
	}
	n.data[args[1]] = v
	return status("OK")
}

func (n *Node) pttl(args []string) any {
	switch v := n.at(args[1]); {
	case v == nil:
		return int64(-2)
	case v.expires == 0:
		return int64(-1)
	default:
		return v.expires - n.millis()
	}
}

func (n *Node) pexpire(args []string) any {
	d, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return errNotInteger
	}
	v := n.at(args[1])
	if v == nil {
		return int64(0)
	}
	if d <= 0 {
		delete(n.data, args[1])
		return int64(1)
	}
	v.expires = n.millis() + d
	return int64(1)
}

func (n *Node) hget(args []string) any {
	v, failed := n.hashAt(args[1])
	if failed != "" {
		return failed
	}
	if v != nil {
		if text, ok := v.hash.values[args[2]]; ok {
			return text
		}
	}
	return nil
}

func (n *Node) hset(args []string) any {
	if len(args)%2 != 0 {
		return failure("ERR wrong number of arguments for 'hset' command")
	}
	v, failed := n.hashAt(args[1])
	if failed != "" {
		return failed
	}
	if v == nil {
		v = &value{hash: newHash()}
		n.data[args[1]] = v
	}
	added := int64(0)
	for i := 2; i < len(args); i += 2 {
		if v.hash.set(args[i], args[i+1]) {
			added++
		}
	}
	return added
}

func (n *Node) hdel(args []string) any {
	v, failed := n.hashAt(args[1])
	if failed != "" {
		return failed
	}
	if v == nil {
		return int64(0)
	}
	gone := int64(0)
	for _, field := range args[2:] {
		if v.hash.remove(field) {
			gone++
		}
	}
	if len(v.hash.fields) == 0 {
		delete(n.data, args[1])
	}
	return gone
}

func (n *Node) hmget(args []string) any {
	v, failed := n.hashAt(args[1])
	if failed != "" {
		return failed
	}
	found := make([]any, len(args)-2)
	if v != nil {
		for i, field := range args[2:] {
			if text, ok := v.hash.values[field]; ok {
				found[i] = text
			}
		}
	}
	return found
}

// hrandfield returns the first fields: which ones a server returns is chance.
func (n *Node) hrandfield(args []string) any {
	v, failed := n.hashAt(args[1])
	count, err := strconv.Atoi(args[2])
	switch {
	case failed != "":
		return failed
	case err != nil || count < 0:
		return failure("ERR value is out of range")
	case v == nil:
		return []any{}
	}
	fields := []any{}
	for _, field := range v.hash.fields[:min(count, len(v.hash.fields))] {
		fields = append(fields, field)
	}
	return fields
}

func (n *Node) hlen(args []string) any {
	v, failed := n.hashAt(args[1])
	switch {
	case failed != "":
		return failed
	case v == nil:
		return int64(0)
	}
	return int64(len(v.hash.fields))
}

func (n *Node) hgetall(args []string) any {
	v, failed := n.hashAt(args[1])
	if failed != "" {
		return failed
	}
	if v == nil {
		return pairs{}
	}
	all := make(pairs, 0, 2*len(v.hash.fields))
	for _, field := range v.hash.fields {
		all = append(all, field, v.hash.values[field])
	}
	return all
}

func (n *Node) hexists(args []string) any {
	v, failed := n.hashAt(args[1])
	if failed != "" {
		return failed
	}
	if v != nil {
		if _, ok := v.hash.values[args[2]]; ok {
			return int64(1)
		}
	}
	return int64(0)
}

func (n *Node) flushall([]string) any {
	clear(n.data)
	return status("OK")
}

func (n *Node) time([]string) any {
	now := n.micros()
	return []any{strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10)}
}

func (n *Node) ping(args []string) any {
	if len(args) > 1 {
		return args[1]
	}
	return status("PONG")
}
