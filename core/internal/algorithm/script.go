package algorithm

import (
	"crypto/sha1" // #nosec G505: it is how Redis names scripts, nothing secret hangs on it
	"embed"
	"encoding/hex"
	"sync/atomic"
)

// Script is a Lua text and the name that Redis knows it by.
type Script struct {
	Text string
	SHA1 string // lower-case hex, for EVALSHA
	Name any    // SHA1, as an interface once and for all
}

//go:embed *.lua
var texts embed.FS

// sources are the files of the algorithms' Lua functions.
var sources = [kinds][]string{
	SlidingWindow: {"sliding_window.lua"}, SlidingLog: {"sliding_log.lua"}, FixedWindow: {"fixed_window.lua"},
	CalendarWindow: {"calendar_window.lua"}, TokenBucket: {"token_bucket_state.lua", "token_bucket.lua"},
	Concurrency: {"concurrency.lua"}, Ban: {"ban.lua"},
}

// The scripts beside those that decide; KEYS, ARGV and reply of each stand at the head of its file.
var (
	Reserve   = script("token_bucket_state.lua", "token_bucket.lua", "reserve.lua")
	GiveBack  = script("sliding_log.lua", "token_bucket_state.lua", "give_back.lua")
	Renew     = script("renew.lua")
	Records   = script("records.lua")
	ImposeBan = script("impose_ban.lua")
)

// DecideScript is the script that decides over these counters together: see decide.lua for its KEYS, ARGV and reply.
func DecideScript(counters []Counter) *Script { return deciders.of(counters, "decide.lua") }

// EqualScript is the script that decides over equal calls, each with these counters: see decide_equal.lua.
func EqualScript(counters []Counter) *Script { return equals.of(counters, "decide_equal.lua") }

// byKinds are the scripts with one driver, by the set of algorithms that they carry: one bit for each kind. A script carries no
// other algorithm than it needs, which makes it cheaper to run.
type byKinds [1 << kinds]atomic.Pointer[Script]

var deciders, equals byKinds

func (b *byKinds) of(counters []Counter, driver string) *Script {
	set := 0
	for i := range counters {
		set |= 1 << counters[i].Limit.Kind
	}
	if s := b[set].Load(); s != nil {
		return s
	}
	var files []string
	for kind := range kinds {
		if set&(1<<kind) != 0 {
			files = append(files, sources[kind]...)
		}
	}
	s := script(append(files, driver)...)
	b[set].Store(&s)
	return b[set].Load()
}

func script(files ...string) Script { return assemble("local algorithms = {}\n", files) }

// plain is a script that is one file.
func plain(file string) *Script {
	s := assemble("", []string{file})
	return &s
}

func assemble(text string, files []string) Script {
	for _, file := range files {
		source, err := texts.ReadFile(file)
		if err != nil {
			panic(err) // it is embedded
		}
		text += string(source)
	}
	sum := sha1.Sum([]byte(text)) // #nosec G401: as above
	name := hex.EncodeToString(sum[:])
	return Script{Text: text, SHA1: name, Name: name}
}
