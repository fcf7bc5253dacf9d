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
	fast     string  // NAME_fast.lua
	alone    *Script // the fast function in decide_fast.lua
}

func readSource(files fs.FS, name, tag string) (s source) {
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
	if s.fast = read(name + "_fast.lua"); s.fast != "" {
		s.alone = assemble("fast", s.fast+"local decide = fast."+tag+"\n", "decide_fast.lua")
	}
	return s
}

// The scripts of single algorithms. KEYS, ARGV and reply of each are at the head of its file.
var (
	Reserve   = assemble("algorithms", registry[TokenBucket].lua.decide, "token_bucket_reserve.lua")
	Renew     = assemble("algorithms", "", "concurrency_renew.lua")
	Records   = assemble("algorithms", "", "sliding_log_records.lua")
	ImposeBan = assemble("algorithms", "", "ban_impose.lua")
)

// DecideScript returns the script that decides over these counters together; see decide.lua.
func DecideScript(counters []Counter) *Script { return deciders.of(KindsOf(counters), "decide.lua") }

// EqualScript returns the script that decides over equal calls, each with these counters; see
// decide_equal.lua.
func EqualScript(counters []Counter) *Script {
	return equals.of(KindsOf(counters), "decide_equal.lua")
}

// UpToScript returns the script that charges as much as fits into all of these counters; see
// decide_up_to.lua.
func UpToScript(counters []Counter) *Script { return uptos.of(KindsOf(counters), "decide_up_to.lua") }

// ManyScript returns the script that decides many calls on counters of these algorithms; see
// decide_many.lua.
func ManyScript(kinds KindSet) *Script { return manys.of(kinds, "decide_many.lua") }

// GiveBackScript returns the script that gives these charges back; see give_back.lua.
func GiveBackScript(charges []Charge) *Script {
	var of KindSet
	for i := range charges {
		of |= 1 << charges[i].Limit.Kind
	}
	return givers.of(of, "give_back.lua")
}

// KindSet has one bit for each kind.
type KindSet uint

// KindsOf returns the algorithms of counters.
func KindsOf(counters []Counter) (of KindSet) {
	for i := range counters {
		of |= 1 << counters[i].Limit.Kind
	}
	return of
}

// byKinds holds the scripts with one driver, by the algorithms that they carry. A script carries no
// other algorithm than it needs, which makes it cheaper to run.
type byKinds struct {
	scripts [1 << len(registry)]atomic.Pointer[Script]
	table   string // of the functions
	source  func(*source) string
}

var (
	deciders = byKinds{table: "algorithms", source: func(s *source) string { return s.decide }}
	equals   = byKinds{table: "algorithms", source: func(s *source) string { return s.decide }}
	uptos    = byKinds{table: "algorithms", source: func(s *source) string { return s.decide }}
	givers   = byKinds{table: "algorithms", source: func(s *source) string { return s.giveBack }}
	manys    = byKinds{table: "fast", source: func(s *source) string { return s.fast }}
)

func (b *byKinds) of(kinds KindSet, driver string) *Script {
	if s := b.scripts[kinds].Load(); s != nil {
		return s
	}
	text := ""
	for kind := range registry {
		if kinds&(1<<kind) != 0 {
			text += b.source(&registry[kind].lua)
		}
	}
	b.scripts[kinds].CompareAndSwap(nil, assemble(b.table, text, driver))
	return b.scripts[kinds].Load()
}

// assemble puts the functions of algorithms, which belong to a table, before a driver.
func assemble(table, functions, driver string) *Script {
	text, err := texts.ReadFile(driver)
	if err != nil {
		panic(err) // it is embedded
	}
	return newScript("local " + table + " = {}\n" + functions + string(text))
}

func newScript(text string) *Script {
	sum := sha1.Sum([]byte(text)) // #nosec G401: as above
	name := hex.EncodeToString(sum[:])
	return &Script{Text: text, SHA1: name, Name: name}
}
