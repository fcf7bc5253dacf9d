package algorithm

import (
	"crypto/sha1" // #nosec G505: it is how Redis names scripts, nothing secret hangs on it
	"embed"
	"encoding/hex"
	"io/fs"
	"sync/atomic"
)

// Script is a Lua text and the name that Redis knows it by.
type Script struct {
	Text string
	SHA1 string // lower-case hex, for EVALSHA
	Name any    // SHA1, boxed once
}

//go:embed *.lua
var texts embed.FS

// source is an algorithm's Lua. Only decide is never empty.
type source struct {
	decide   string  // NAME_state.lua, NAME.lua
	giveBack string  // NAME_state.lua, NAME_giveback.lua
	fast     *Script // NAME_fast.lua
}

func readSource(files fs.FS, name string) (s source) {
	read := func(file string) string {
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return ""
		}
		return string(text)
	}
	state := read(name + "_state.lua")
	if s.decide = read(name + ".lua"); s.decide == "" {
		panic("there is no " + name + ".lua")
	}
	s.decide = state + s.decide
	if giveBack := read(name + "_giveback.lua"); giveBack != "" {
		s.giveBack = state + giveBack
	}
	if fast := read(name + "_fast.lua"); fast != "" {
		s.fast = newScript(fast)
	}
	return s
}

// The scripts of single algorithms. KEYS, ARGV and reply of each are at the head of its file.
var (
	Reserve   = assemble(registry[TokenBucket].lua.decide, "token_bucket_reserve.lua")
	Renew     = assemble("", "concurrency_renew.lua")
	Records   = assemble("", "sliding_log_records.lua")
	ImposeBan = assemble("", "ban_impose.lua")
)

// DecideScript returns the script that decides over these counters together; see decide.lua.
func DecideScript(counters []Counter) *Script { return deciders.of(kindsOf(counters), "decide.lua") }

// EqualScript returns the script that decides over equal calls, each with these counters; see
// decide_equal.lua.
func EqualScript(counters []Counter) *Script {
	return equals.of(kindsOf(counters), "decide_equal.lua")
}

// UpToScript returns the script that charges as much as fits into all of these counters; see
// decide_up_to.lua.
func UpToScript(counters []Counter) *Script { return uptos.of(kindsOf(counters), "decide_up_to.lua") }

// GiveBackScript returns the script that gives these charges back; see give_back.lua.
func GiveBackScript(charges []Charge) *Script {
	var of kindSet
	for i := range charges {
		of |= 1 << charges[i].Limit.Kind
	}
	return givers.of(of, "give_back.lua")
}

// kindSet has one bit for each kind.
type kindSet uint

func kindsOf(counters []Counter) (of kindSet) {
	for i := range counters {
		of |= 1 << counters[i].Limit.Kind
	}
	return of
}

// byKinds holds the scripts with one driver, by the algorithms that they carry. A script carries no
// other algorithm than it needs, which makes it cheaper to run.
type byKinds struct {
	scripts [1 << len(registry)]atomic.Pointer[Script]
	source  func(*source) string
}

var (
	deciders = byKinds{source: func(s *source) string { return s.decide }}
	equals   = byKinds{source: func(s *source) string { return s.decide }}
	uptos    = byKinds{source: func(s *source) string { return s.decide }}
	givers   = byKinds{source: func(s *source) string { return s.giveBack }}
)

func (b *byKinds) of(kinds kindSet, driver string) *Script {
	if s := b.scripts[kinds].Load(); s != nil {
		return s
	}
	text := ""
	for kind := range registry {
		if kinds&(1<<kind) != 0 {
			text += b.source(&registry[kind].lua)
		}
	}
	b.scripts[kinds].CompareAndSwap(nil, assemble(text, driver))
	return b.scripts[kinds].Load()
}

// assemble puts the functions of algorithms before a driver.
func assemble(functions, driver string) *Script {
	text, err := texts.ReadFile(driver)
	if err != nil {
		panic(err) // it is embedded
	}
	return newScript("local algorithms = {}\n" + functions + string(text))
}

func newScript(text string) *Script {
	sum := sha1.Sum([]byte(text)) // #nosec G401: as above
	name := hex.EncodeToString(sum[:])
	return &Script{Text: text, SHA1: name, Name: name}
}
