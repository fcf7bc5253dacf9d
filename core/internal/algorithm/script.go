package algorithm

import (
	"crypto/sha1" // #nosec G505: Redis names scripts by SHA-1, and no security depends on it
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
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
	PauseBan  = assemble("algorithms", "", "ban_pause.lua")
	PauseOver = assemble("algorithms", "", "ban_pause_over.lua")
)

// DecideScript returns the script that decides these counters together: decide.lua, within
// override.lua if any of them may have an override.
func DecideScript(counters []Counter) *Script {
	if MayHaveOverrides(counters) {
		return overriddenDeciders.of(KindsOf(counters), "decide.lua")
	}
	return deciders.of(KindsOf(counters), "decide.lua")
}

// EqualScript returns the script that decides equal calls, each with these counters:
// decide_equal.lua, within override.lua if any of them may have an override.
func EqualScript(counters []Counter) *Script {
	if MayHaveOverrides(counters) {
		return overriddenEquals.of(KindsOf(counters), "decide_equal.lua")
	}
	return equals.of(KindsOf(counters), "decide_equal.lua")
}

// UpToScript returns the script that charges as much as fits into all of these counters:
// decide_up_to.lua, within override.lua if any of them may have an override.
func UpToScript(counters []Counter) *Script {
	if MayHaveOverrides(counters) {
		return overriddenUptos.of(KindsOf(counters), "decide_up_to.lua")
	}
	return uptos.of(KindsOf(counters), "decide_up_to.lua")
}

// ChargeScript returns the script that charges these counters whether the costs fit or not:
// charge.lua, within override.lua if any of them may have an override.
func ChargeScript(counters []Counter) *Script {
	if MayHaveOverrides(counters) {
		return overriddenChargers.of(KindsOf(counters), "charge.lua")
	}
	return chargers.of(KindsOf(counters), "charge.lua")
}

// ReserveScript returns the script that reserves permits of this counter: token_bucket_reserve.lua,
// within override.lua if it may have an override.
func ReserveScript(c *Counter) *Script {
	if c.Override != nil {
		return overriddenReserve
	}
	return Reserve
}

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

// byKinds holds the scripts with one driver, by the algorithms that they contain. A script contains
// only the algorithms that it needs, which makes it cheaper to run.
type byKinds struct {
	scripts *scriptTable
	table   string // of the functions
	source  func(*source) string
	within  func(functions, driver string) *Script // nil: the driver stands by itself
}

// scriptTable has a script for each set of algorithms. It is allocated at run time, so that the
// ten empty tables do not add 82 kB to the executable of each service.
type scriptTable [1 << len(registry)]atomic.Pointer[Script]

var (
	deciders = byKinds{scripts: &scriptTable{}, table: "algorithms", source: func(s *source) string { return s.decide }}
	equals   = byKinds{scripts: &scriptTable{}, table: "algorithms", source: func(s *source) string { return s.decide }}
	uptos    = byKinds{scripts: &scriptTable{}, table: "algorithms", source: func(s *source) string { return s.decide }}
	chargers = byKinds{scripts: &scriptTable{}, table: "algorithms", source: func(s *source) string { return s.decide }}
	givers   = byKinds{scripts: &scriptTable{}, table: "algorithms", source: func(s *source) string { return s.giveBack }}
	manys    = byKinds{scripts: &scriptTable{}, table: "fast", source: func(s *source) string { return s.fast }}

	overriddenDeciders = byKinds{scripts: &scriptTable{}, source: func(s *source) string { return s.decide }, within: overridden("decide", 1, 1)}
	overriddenEquals   = byKinds{scripts: &scriptTable{}, source: func(s *source) string { return s.decide }, within: overridden("equal", 1, 1)}
	overriddenUptos    = byKinds{scripts: &scriptTable{}, source: func(s *source) string { return s.decide }, within: overridden("up to", 0, 2)}
	overriddenChargers = byKinds{scripts: &scriptTable{}, source: func(s *source) string { return s.decide }, within: overridden("charge", 1, 1)}
	overriddenReserve  = overridden("reserve", 0, 2)(registry[TokenBucket].lua.decide, "token_bucket_reserve.lua")
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
	made := b.within
	if made == nil {
		made = func(functions, driver string) *Script { return assemble(b.table, functions, driver) }
	}
	b.scripts[kinds].CompareAndSwap(nil, made(text, driver))
	return b.scripts[kinds].Load()
}

// clockLines are the lines by which every script reads Redis's clock.
const clockLines = "local clock = redis.call('TIME')\nlocal now = clock[1] * 1000000 + clock[2]\n"

// overridden returns a function that puts a driver within override.lua, where name, head and lead
// are explained. The driver's text stays the same, except that the clock is read only once, before
// both.
func overridden(name string, head, lead int) func(functions, driver string) *Script {
	return func(functions, driver string) *Script {
		return NewScript("local algorithms = {}\n" + functions + clockLines + "local function driver(KEYS, ARGV)\n" +
			strings.Replace(textOf(driver), clockLines, "", 1) + "end\n" +
			fmt.Sprintf("local name, head, lead = '%s', %d, %d\n", name, head, lead) + textOf("override.lua"))
	}
}

// assemble puts the functions of algorithms and the table that holds them before a driver.
func assemble(table, functions, driver string) *Script {
	return NewScript("local " + table + " = {}\n" + functions + textOf(driver))
}

func textOf(file string) string {
	text, err := texts.ReadFile(file)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

// NewScript returns the script of a text.
func NewScript(text string) *Script {
	sum := sha1.Sum([]byte(text)) // #nosec G401: as above
	name := hex.EncodeToString(sum[:])
	return &Script{Text: text, SHA1: name, Name: name}
}
