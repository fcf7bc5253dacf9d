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

// source is an algorithm's Lua.
type source struct {
	step   string  // NAME.lua, up to the change
	change string  // all of NAME.lua
	alone  *Script // the step in decide_one.lua
}

func readSource(files fs.FS, p *Properties) (s source) {
	text, err := fs.ReadFile(files, p.File+".lua")
	if err != nil {
		panic(err) // it is embedded
	}
	s.change = string(text)
	s.step, _, _ = strings.Cut(s.change, "\nchanges."+p.Tag)
	s.step += "\n"
	s.alone = NewScript(fmt.Sprintf("%s%slocal step, is_set = steps.%[3]s, sets.%[3]s\n%[4]s", head, s.step, p.Tag, textOf("decide_one.lua")))
	return s
}

// Records is the script that lists the calls of a log: sliding_log_records.lua.
var Records = NewScript(head + toChange(&registry[SlidingLog].lua) + textOf("sliding_log_records.lua"))

// DecideScript returns the script that decides calls on counters of these algorithms: decide.lua.
func DecideScript(kinds KindSet) *Script { return deciders.of(kinds, "decide.lua") }

// ChangeScript returns the script that changes counters of these algorithms: change.lua.
func ChangeScript(kinds KindSet) *Script { return changers.of(kinds, "change.lua") }

// SettleScript returns the script that settles a bill with counters of these algorithms, or adds to it:
// settle.lua.
func SettleScript(kinds KindSet) *Script { return settlers.of(kinds, "settle.lua") }

// KindSet has one bit for each kind.
type KindSet uint

// KindsOf returns the algorithms of counters.
func KindsOf(counters []Counter) (of KindSet) {
	for i := range counters {
		of |= 1 << counters[i].Limit.Kind
	}
	return of
}

// ofCharges returns the algorithms of charges.
func ofCharges(charges []Charge) (of KindSet) {
	for i := range charges {
		of |= 1 << charges[i].Limit.Kind
	}
	return of
}

// byKinds holds the scripts with one driver, by the algorithms that they contain. A script contains
// only the algorithms that it needs, which makes it cheaper to run.
type byKinds struct {
	scripts *scriptTable
	source  func(*source) string
}

// scriptTable has a script for each set of algorithms. It is allocated at run time, so that the
// empty tables do not add 8 kB each to the executable of each service.
type scriptTable [1 << len(registry)]atomic.Pointer[Script]

var (
	deciders = newByKinds(func(s *source) string { return s.step })
	changers = newByKinds(toChange)
	settlers = newByKinds(toChange)
)

func toChange(s *source) string { return s.change }

func newByKinds(of func(*source) string) *byKinds { return &byKinds{&scriptTable{}, of} }

// head is the beginning of each script.
var head = "local steps, changes, sets = {}, {}, {} -- sets: those whose state is a sorted set\n" + textOf("set.lua")

// of returns the script for algorithms with the driver in a file.
func (b *byKinds) of(kinds KindSet, driver string) *Script {
	if s := b.scripts[kinds].Load(); s != nil {
		return s
	}
	functions := ""
	for kind := range registry {
		if kinds&(1<<kind) != 0 {
			functions += b.source(&registry[kind].lua)
		}
	}
	b.scripts[kinds].CompareAndSwap(nil, NewScript(head+functions+textOf(driver)))
	return b.scripts[kinds].Load()
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
