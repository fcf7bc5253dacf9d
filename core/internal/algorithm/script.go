package algorithm

import (
	"crypto/sha1" // #nosec G505: Redis names scripts by SHA-1, and no security depends on it
	"embed"
	"encoding/hex"
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
	settle   string  // both, the giving function in the table givers
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
		s.settle = s.giveBack + "givers." + tag + " = algorithms." + tag + "\n" + s.decide
	}
	if s.fast = read(name + "_fast.lua"); s.fast != "" {
		s.alone = assemble("fast", s.fast+"local decide = fast."+tag+"\n", "decide_fast.lua")
	}
	return s
}

// The scripts of single algorithms. KEYS, ARGV and reply of each are at the head of its file.
var (
	Reserve    = assemble("algorithms", registry[TokenBucket].lua.decide, "token_bucket_reserve.lua")
	Renew      = assemble("algorithms", "", "concurrency_renew.lua")
	Records    = assemble("algorithms", textOf("sliding_log_state.lua"), "sliding_log_records.lua")
	BeginPause = assemble("algorithms", textOf("pause_state.lua"), "pause_begin.lua")
	PauseOver  = assemble("algorithms", textOf("pause_state.lua"), "pause_over.lua")
)

// DecideScript returns the script that decides these counters together: decide.lua.
func DecideScript(counters []Counter) *Script {
	return deciders.of(KindsOf(counters), "decide.lua")
}

// EqualScript returns the script that decides equal calls, each with these counters:
// decide_equal.lua.
func EqualScript(counters []Counter) *Script {
	return equals.of(KindsOf(counters), "decide_equal.lua")
}

// UpToScript returns the script that charges as much as fits into all of these counters:
// decide_up_to.lua.
func UpToScript(counters []Counter) *Script {
	return uptos.of(KindsOf(counters), "decide_up_to.lua")
}

// ChargeScript returns the script that charges these counters whether the costs fit or not:
// charge.lua, within once.lua if once is set.
func ChargeScript(counters []Counter, once bool) *Script {
	if once {
		return onceChargers.of(KindsOf(counters), "debt.lua", "charge.lua")
	}
	return chargers.of(KindsOf(counters), "debt.lua", "charge.lua")
}

// OpenScript returns the script that opens a bill with these counters: bill_open.lua.
func OpenScript(counters []Counter) *Script {
	return openers.of(KindsOf(counters), "decide.lua")
}

// SettleScript returns the script that settles a bill with these counters, or adds to it:
// bill_settle.lua.
func SettleScript(counters []Counter) *Script {
	return settlers.of(KindsOf(counters), "debt.lua", "bill_settle.lua")
}

// ManyScript returns the script that decides many calls on counters of these algorithms; see
// decide_many.lua.
func ManyScript(kinds KindSet) *Script { return manys.of(kinds, "decide_many.lua") }

// GiveBackScript returns the script that gives these charges back: give_back.lua, within once.lua
// if they have a Record.
func GiveBackScript(charges []Charge) *Script {
	var of KindSet
	for i := range charges {
		of |= 1 << charges[i].Limit.Kind
	}
	if charges[0].Record != nil {
		return onceGivers.of(of, "give_back.lua")
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
	source  func(*source) string
	text    func(functions, driver string) string // of the script
}

// scriptTable has a script for each set of algorithms. It is allocated at run time, so that the
// empty tables do not add 8 kB each to the executable of each service.
type scriptTable [1 << len(registry)]atomic.Pointer[Script]

var (
	deciders     = newByKinds(toDecide, plain("algorithms"))
	equals       = newByKinds(toDecide, plain("algorithms"))
	uptos        = newByKinds(toDecide, plain("algorithms"))
	chargers     = newByKinds(toDecide, plain("algorithms"))
	openers      = newByKinds(toDecide, opening(withoutClock))
	settlers     = newByKinds(func(s *source) string { return s.settle }, plain("algorithms", "givers"))
	givers       = newByKinds(func(s *source) string { return s.giveBack }, plain("algorithms"))
	onceChargers = newByKinds(toDecide, once)
	onceGivers   = newByKinds(func(s *source) string { return s.giveBack }, once)
	manys        = newByKinds(func(s *source) string { return s.fast }, plain("fast"))
)

func toDecide(s *source) string { return s.decide }

func newByKinds(of func(*source) string, text func(functions, driver string) string) *byKinds {
	return &byKinds{&scriptTable{}, of, text}
}

// of returns the script for algorithms with the driver in these files.
func (b *byKinds) of(kinds KindSet, driver ...string) *Script {
	if s := b.scripts[kinds].Load(); s != nil {
		return s
	}
	functions := ""
	for kind := range registry {
		if kinds&(1<<kind) != 0 {
			functions += b.source(&registry[kind].lua)
		}
	}
	b.scripts[kinds].CompareAndSwap(nil, NewScript(b.text(functions, textOf(driver...))))
	return b.scripts[kinds].Load()
}

// clockLines are the lines in which every script reads Redis's clock.
const clockLines = "local clock = redis.call('TIME')\nlocal now = clock[1] * 1000000 + clock[2]\n"

// withoutClock returns a driver without these lines, for a script that reads the clock before.
func withoutClock(driver string) string { return strings.Replace(driver, clockLines, "", 1) }

// plain returns a function that puts the functions of algorithms, and the tables that hold them, before
// a driver.
func plain(tables ...string) func(functions, driver string) string {
	return func(functions, driver string) (text string) {
		for _, table := range tables {
			text += "local " + table + " = {}\n"
		}
		return text + functions + driver
	}
}

// opening returns a function that makes decide.lua a function of bill_open.lua. body returns the text
// of that function.
func opening(body func(driver string) string) func(functions, driver string) string {
	return func(functions, driver string) string {
		return "local algorithms = {}\n" + functions + clockLines +
			"local function decide(KEYS, ARGV)\n" + body(driver) + "end\n" + textOf("bill_open.lua")
	}
}

// once puts a driver within once.lua.
func once(functions, driver string) string {
	return "local algorithms = {}\n" + functions + clockLines +
		"local function run(KEYS, ARGV)\n" + withoutClock(driver) + "end\n" + textOf("once.lua")
}

// assemble returns a script of functions, the table that holds them, and a driver.
func assemble(table, functions, driver string) *Script {
	return NewScript(plain(table)(functions, textOf(driver)))
}

func textOf(files ...string) (all string) {
	for _, file := range files {
		text, err := texts.ReadFile(file)
		if err != nil {
			panic(err) // it is embedded
		}
		all += string(text)
	}
	return all
}

// NewScript returns the script of a text.
func NewScript(text string) *Script {
	sum := sha1.Sum([]byte(text)) // #nosec G401: as above
	name := hex.EncodeToString(sum[:])
	return &Script{Text: text, SHA1: name, Name: name}
}
