package simulation

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// shaOf names a script as Redis does.
func shaOf(source string) string {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// library is every script that was ever compiled, and the interpreters that are free. Compiling takes longer than
// running, and so does making an interpreter; both outlive a world, since a run is many of them.
var library struct {
	sync.Mutex
	scripts map[string]*lua.FunctionProto
	free    []*machine
}

// compile returns the compiled form of the source that has this SHA.
func compile(source, sha string) (*lua.FunctionProto, error) {
	library.Lock()
	defer library.Unlock()
	if proto := library.scripts[sha]; proto != nil {
		return proto, nil
	}
	chunk, err := parse.Parse(strings.NewReader(source), scriptName)
	if err != nil {
		return nil, err
	}
	proto, err := lua.Compile(chunk, scriptName)
	if err != nil {
		return nil, err
	}
	if library.scripts == nil {
		library.scripts = make(map[string]*lua.FunctionProto)
	}
	library.scripts[sha] = proto
	return proto, nil
}

// scriptName is what Redis calls every script in its messages.
const scriptName = "user_script"

// machine is one interpreter. It runs one script at a time.
type machine struct {
	state *lua.LState
	ready map[*lua.FunctionProto]*lua.LFunction
	call  func(args []string) any // the commands of the node that the script runs on
	args  []string
}

func borrowMachine() *machine {
	library.Lock()
	defer library.Unlock()
	if n := len(library.free); n > 0 {
		m := library.free[n-1]
		library.free = library.free[:n-1]
		return m
	}
	return newMachine()
}

func (m *machine) giveBack() {
	m.call = nil
	library.Lock()
	defer library.Unlock()
	library.free = append(library.free, m)
}

// newMachine makes an interpreter with the libraries that Redis has, less those that no script of ours uses.
func newMachine() *machine {
	l := lua.NewState(lua.Options{SkipOpenLibs: true, RegistrySize: 1024, CallStackSize: 64})
	m := &machine{state: l, ready: make(map[*lua.FunctionProto]*lua.LFunction)}
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
		lua.StringLibName: lua.OpenString, lua.MathLibName: lua.OpenMath,
	} {
		l.Push(l.NewFunction(open))
		l.Push(lua.LString(name))
		l.Call(1, 0)
	}
	redis := l.NewTable()
	redis.RawSetString("call", l.NewFunction(func(l *lua.LState) int { return m.redis(l, true) }))
	redis.RawSetString("pcall", l.NewFunction(func(l *lua.LState) int { return m.redis(l, false) }))
	redis.RawSetString("sha1hex", l.NewFunction(func(l *lua.LState) int {
		l.Push(lua.LString(shaOf(l.CheckString(1))))
		return 1
	}))
	redis.RawSetString("error_reply", l.NewFunction(func(l *lua.LState) int { return field(l, "err") }))
	redis.RawSetString("status_reply", l.NewFunction(func(l *lua.LState) int { return field(l, "ok") }))
	l.SetGlobal("redis", redis)
	return m
}

// field returns a table of one named string, which is how scripts spell statuses and errors.
func field(l *lua.LState, name string) int {
	t := l.CreateTable(0, 1)
	t.RawSetString(name, lua.LString(l.CheckString(1)))
	l.Push(t)
	return 1
}

// run runs a script and returns its reply.
func (m *machine) run(proto *lua.FunctionProto, sha string, keys, argv []string) any {
	l := m.state
	fn := m.ready[proto]
	if fn == nil {
		fn = l.NewFunctionFromProto(proto)
		m.ready[proto] = fn
	}
	l.SetGlobal("KEYS", stringTable(l, keys))
	l.SetGlobal("ARGV", stringTable(l, argv))
	l.Push(fn)
	err := l.PCall(0, 1, nil)
	if err != nil {
		l.SetTop(0)
		return cutOff(err, sha)
	}
	result := l.Get(-1)
	l.SetTop(0)
	return fromLua(result)
}

func stringTable(l *lua.LState, values []string) *lua.LTable {
	t := l.CreateTable(len(values), 0)
	for _, v := range values {
		t.Append(lua.LString(v))
	}
	return t
}

// redis is redis.call and redis.pcall: an error cuts the script off or is returned as a table.
func (m *machine) redis(l *lua.LState, raise bool) int {
	m.args = m.args[:0]
	for i := 1; i <= l.GetTop(); i++ {
		switch v := l.Get(i).(type) {
		case lua.LString:
			m.args = append(m.args, string(v))
		case lua.LNumber:
			// As Redis does it: with all digits, other than Lua's own tostring.
			m.args = append(m.args, strconv.FormatFloat(float64(v), 'g', 17, 64))
		default:
			return m.refuse(l, raise, "ERR Lua redis lib command arguments must be strings or integers")
		}
	}
	if len(m.args) == 0 {
		return m.refuse(l, raise, "ERR Please specify at least one argument for this redis.call() call")
	}
	reply := m.call(m.args)
	if e, ok := reply.(failure); ok {
		return m.refuse(l, raise, string(e))
	}
	l.Push(toLua(l, reply))
	return 1
}

func (m *machine) refuse(l *lua.LState, raise bool, text string) int {
	t := l.CreateTable(0, 1)
	t.RawSetString("err", lua.LString(text))
	if raise {
		t.RawSetString("at", lua.LString(l.Where(1)))
		l.Error(t, 1)
	}
	l.Push(t)
	return 1
}

var whereLine = regexp.MustCompile(scriptName + `:(\d+):`)

// cutOff words the error of a script that ended in the middle, as Redis 7.0 does.
func cutOff(err error, sha string) failure {
	text, at := err.Error(), err.Error()
	if e, ok := err.(*lua.ApiError); ok { //nolint:errorlint // nothing wraps it
		text, at = e.Object.String(), e.Object.String()
		if t, ok := e.Object.(*lua.LTable); ok {
			text, at = t.RawGetString("err").String(), t.RawGetString("at").String()
		} else {
			text = "ERR " + text
		}
	}
	line := "0"
	if found := whereLine.FindStringSubmatch(at); found != nil {
		line = found[1]
	}
	return failure(fmt.Sprintf("%s script: %s, on @%s:%s.", text, sha, scriptName, line))
}

// toLua converts a reply to what a script sees.
func toLua(l *lua.LState, reply any) lua.LValue {
	switch v := reply.(type) {
	case int64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case status:
		t := l.CreateTable(0, 1)
		t.RawSetString("ok", lua.LString(v))
		return t
	case pairs:
		return toLua(l, []any(v))
	case []any:
		t := l.CreateTable(len(v), 0)
		for _, item := range v {
			t.Append(toLua(l, item))
		}
		return t
	}
	return lua.LFalse // no value
}

// fromLua converts what a script returns to a reply.
func fromLua(v lua.LValue) any {
	switch v := v.(type) {
	case lua.LNumber:
		return int64(math.Trunc(float64(v)))
	case lua.LString:
		return string(v)
	case lua.LBool:
		if v {
			return int64(1)
		}
		return nil
	case *lua.LTable:
		if e, ok := v.RawGetString("err").(lua.LString); ok {
			return failure(e)
		}
		if s, ok := v.RawGetString("ok").(lua.LString); ok {
			return status(s)
		}
		items := make([]any, 0, v.Len())
		for i := 1; ; i++ {
			item := v.RawGetInt(i)
			if item == lua.LNil {
				return items
			}
			items = append(items, fromLua(item))
		}
	}
	return nil
}
