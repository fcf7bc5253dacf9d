package algorithm

import (
	"crypto/sha1" // #nosec G505: it is how Redis names scripts, nothing secret hangs on it
	_ "embed"
	"encoding/hex"
)

// Script is a Lua text and the name that Redis knows it by.
type Script struct {
	Text string
	SHA1 string // lower-case hex, for EVALSHA
}

//go:embed sliding_window.lua
var slidingWindowLua string

//go:embed fixed_window.lua
var fixedWindowLua string

//go:embed token_bucket.lua
var tokenBucketLua string

//go:embed decide.lua
var decideLua string

//go:embed give_back.lua
var giveBackLua string

var (
	// decideOne[k] decides over counters of algorithm k alone; it carries no other algorithm, which makes it cheaper to run.
	decideOne = [...]Script{
		SlidingWindow: script(slidingWindowLua, decideLua),
		FixedWindow:   script(fixedWindowLua, decideLua),
		TokenBucket:   script(tokenBucketLua, decideLua),
	}
	decideMixed = script(slidingWindowLua, fixedWindowLua, tokenBucketLua, decideLua)
	// GiveBack is the script that takes charges back: see give_back.lua.
	GiveBack = script(giveBackLua)
)

// DecideScript is the script that decides over these counters together: see decide.lua for its KEYS, ARGV and reply.
func DecideScript(counters []Counter) *Script {
	kind := counters[0].Limit.Kind
	for i := 1; i < len(counters); i++ {
		if counters[i].Limit.Kind != kind {
			return &decideMixed
		}
	}
	return &decideOne[kind]
}

func script(parts ...string) Script {
	text := "local algorithms = {}\n"
	for _, part := range parts {
		text += part
	}
	sum := sha1.Sum([]byte(text)) // #nosec G401: as above
	return Script{Text: text, SHA1: hex.EncodeToString(sum[:])}
}
