package simulation

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Settings are a node's answers to CONFIG GET.
type Settings map[string]string

// defaultSettings are those of a Redis that forgets what it had when it is restarted.
func defaultSettings() Settings {
	return Settings{
		"appendonly": "no", "appendfsync": "everysec", "no-appendfsync-on-rewrite": "no",
		"maxmemory": "0", "maxmemory-policy": "noeviction",
	}
}

func (n *Node) config(args []string) any {
	if !strings.EqualFold(args[1], "GET") {
		return failure(fmt.Sprintf("ERR unknown subcommand '%s'. Try CONFIG HELP.", args[1]))
	}
	var names []string
	for name := range n.settings {
		for _, pattern := range args[2:] {
			if ok, err := path.Match(strings.ToLower(pattern), name); ok && err == nil {
				names = append(names, name)
				break
			}
		}
	}
	slices.Sort(names)
	found := pairs{}
	for _, name := range names {
		found = append(found, name, n.settings[name])
	}
	return found
}

func (n *Node) info(args []string) any {
	sections := args[1:]
	wanted := func(name string) bool {
		if len(sections) == 0 {
			return true
		}
		for _, s := range sections {
			if s = strings.ToLower(s); s == name || s == "all" || s == "everything" || s == "default" {
				return true
			}
		}
		return false
	}
	var parts []string
	if wanted("server") {
		parts = append(parts, "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:"+n.runID+"\r\n")
	}
	if wanted("memory") {
		parts = append(parts, "# Memory\r\nmaxmemory:"+n.settings["maxmemory"]+
			"\r\nmaxmemory_policy:"+n.settings["maxmemory-policy"]+"\r\n")
	}
	if wanted("replication") {
		parts = append(parts, "# Replication\r\nrole:master\r\nconnected_slaves:0\r\nmaster_replid:"+n.replID+
			"\r\nmaster_replid2:"+strings.Repeat("0", 40)+"\r\n")
	}
	return strings.Join(parts, "\r\n")
}

func (n *Node) pubsub(args []string) any {
	switch strings.ToUpper(args[1]) {
	case "NUMSUB":
		found := []any{}
		for _, channel := range args[2:] {
			found = append(found, channel, int64(len(n.subscribers(channel))))
		}
		return found
	case "CHANNELS":
		seen := []any{}
		for _, s := range n.sessions {
			for channel := range s.channels {
				if !slices.Contains(seen, any(channel)) {
					seen = append(seen, channel)
				}
			}
		}
		return seen
	}
	return failure(fmt.Sprintf("ERR unknown subcommand '%s'. Try PUBSUB HELP.", args[1]))
}

// publish sends a message to everybody who has subscribed, in the order of their connections.
func (n *Node) publish(args []string) any {
	heard := n.subscribers(args[1])
	for _, s := range heard {
		s.conn.reply(push{"message", args[1], args[2]})
	}
	return int64(len(heard))
}

func (n *Node) subscribers(channel string) []*session {
	var who []*session
	for _, s := range n.sessions { // in the order of their connections
		if s.channels[channel] {
			who = append(who, s)
		}
	}
	return who
}

// subscribe and unsubscribe answer once for every channel.
func (s *session) subscribe(channels []string) {
	for _, channel := range channels {
		if s.channels == nil {
			s.channels = make(map[string]bool)
		}
		s.channels[channel] = true
		s.conn.reply(push{"subscribe", channel, int64(len(s.channels))})
	}
}

func (s *session) unsubscribe(channels []string) {
	for _, channel := range channels {
		delete(s.channels, channel)
		s.conn.reply(push{"unsubscribe", channel, int64(len(s.channels))})
	}
}

// script runs EVALSHA and EVAL.
func (n *Node) script(args []string) any {
	if len(args) < 3 {
		return failure("ERR wrong number of arguments for 'eval' command")
	}
	count, err := strconv.Atoi(args[2])
	switch {
	case err != nil:
		return errNotInteger
	case count < 0:
		return failure("ERR Number of keys can't be negative")
	case count > len(args)-3:
		return failure("ERR Number of keys can't be greater than number of args")
	}
	sha := args[1]
	source := n.scripts[sha]
	if strings.EqualFold(args[0], "EVAL") {
		source, sha = args[1], shaOf(args[1])
		n.scripts[sha] = source
	} else if source == "" {
		return failure("NOSCRIPT No matching script. Please use EVAL.")
	}
	proto, err := compile(source, sha)
	if err != nil {
		return failure("ERR Error compiling script (new function): " + strings.ReplaceAll(err.Error(), "\n", " "))
	}
	m := borrowMachine()
	defer m.giveBack()
	m.call = n.call
	return m.run(proto, sha, args[3:3+count], args[3+count:])
}

// scriptCommand is SCRIPT LOAD, EXISTS and FLUSH.
func (n *Node) scriptCommand(args []string) any {
	switch {
	case len(args) == 3 && strings.EqualFold(args[1], "LOAD"):
		sha := shaOf(args[2])
		if _, err := compile(args[2], sha); err != nil {
			return failure("ERR Error compiling script (new function): " + err.Error())
		}
		n.scripts[sha] = args[2]
		return sha
	case len(args) >= 2 && strings.EqualFold(args[1], "FLUSH"):
		clear(n.scripts)
		return status("OK")
	case len(args) >= 3 && strings.EqualFold(args[1], "EXISTS"):
		found := make([]any, len(args)-2)
		for i, sha := range args[2:] {
			found[i] = int64(0)
			if n.scripts[sha] != "" {
				found[i] = int64(1)
			}
		}
		return found
	}
	return failure("ERR unknown subcommand. Try SCRIPT HELP.")
}
