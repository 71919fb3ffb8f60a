package script

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1; nothing here relies on its strength.
	_ "embed"
	"encoding/hex"
)

// A Script is one Lua source and the name Redis knows it by. Every source is whole: what a server runs is read in one place,
// at the cost of a few lines that begin several of them.
type Script struct {
	// Name is the file's name without .lua.
	Name string
	// Source is the Lua text, for EVAL.
	Source string
	// SHA is the hexadecimal SHA-1 of Source, for EVALSHA.
	SHA string
}

func load(name, source string) *Script {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see the import
	return &Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:])}
}

var (
	//go:embed acquire.lua
	acquireSource string
	//go:embed renew.lua
	renewSource string
	//go:embed raise.lua
	raiseSource string
	//go:embed release.lua
	releaseSource string
	//go:embed revoke.lua
	revokeSource string
	//go:embed force_release.lua
	forceReleaseSource string
	//go:embed inspect.lua
	inspectSource string
	//go:embed probe.lua
	probeSource string
	//go:embed check.lua
	checkSource string
	//go:embed settle.lua
	settleSource string
)

var (
	acquireScript      = load("acquire", acquireSource)
	renewScript        = load("renew", renewSource)
	raiseScript        = load("raise", raiseSource)
	releaseScript      = load("release", releaseSource)
	revokeScript       = load("revoke", revokeSource)
	forceReleaseScript = load("force_release", forceReleaseSource)
	inspectScript      = load("inspect", inspectSource)
	probeScript        = load("probe", probeSource)
	checkScript        = load("check", checkSource)
	settleScript       = load("settle", settleSource)
)

// All returns every script, in no particular order.
func All() []*Script {
	return []*Script{
		acquireScript, renewScript, raiseScript, releaseScript, revokeScript, forceReleaseScript, inspectScript, probeScript,
		checkScript, settleScript,
	}
}
