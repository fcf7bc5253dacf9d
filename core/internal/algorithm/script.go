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
}

//go:embed *.lua
var texts embed.FS

// sources are the files of the algorithms' Lua functions.
var sources = [kinds]string{
	SlidingWindow: "sliding_window.lua", SlidingLog: "sliding_log.lua", FixedWindow: "fixed_window.lua",
	CalendarWindow: "calendar_window.lua", TokenBucket: "token_bucket.lua", Concurrency: "concurrency.lua", Ban: "ban.lua",
}

// The scripts beside those that decide; KEYS, ARGV and reply of each stand at the head of its file.
var (
	Reserve   = script("token_bucket.lua", "reserve.lua")
	GiveBack  = script("give_back.lua")
	Renew     = script("renew.lua")
	Records   = script("records.lua")
	ImposeBan = script("impose_ban.lua")
)

// deciders are the scripts that decide, by the set of algorithms that they carry: one bit for each kind. A script carries
// no other algorithm than it needs, which makes it cheaper to run.
var deciders [1 << kinds]atomic.Pointer[Script]

// DecideScript is the script that decides over these counters together: see decide.lua for its KEYS, ARGV and reply.
func DecideScript(counters []Counter) *Script {
	set := 0
	for i := range counters {
		set |= 1 << counters[i].Limit.Kind
	}
	if s := deciders[set].Load(); s != nil {
		return s
	}
	var files []string
	for kind := range kinds {
		if set&(1<<kind) != 0 {
			files = append(files, sources[kind])
		}
	}
	s := script(append(files, "decide.lua")...)
	deciders[set].Store(&s)
	return deciders[set].Load()
}

func script(files ...string) Script {
	text := "local algorithms = {}\n"
	for _, file := range files {
		source, err := texts.ReadFile(file)
		if err != nil {
			panic(err) // it is embedded
		}
		text += string(source)
	}
	sum := sha1.Sum([]byte(text)) // #nosec G401: as above
	return Script{Text: text, SHA1: hex.EncodeToString(sum[:])}
}
