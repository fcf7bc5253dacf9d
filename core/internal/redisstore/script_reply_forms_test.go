package redisstore_test

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// fastForm reports whether a text has the form of a fast script's reply to calls that cost so much
// together.
func fastForm(l *algorithm.Limit, text string, cost int64) bool {
	switch l.Kind {
	case algorithm.TokenBucket:
		written := len(text) == 39
		if _, now := cutMoment(text); (len(text) == 21 || written) && !now {
			return false
		}
		used, err := strconv.ParseInt(text, 10, 64)
		if written { // with all calls
			charged := units(text[25:32]) - cost
			return units(text[7:14]) >= cost*l.Permit && units(text[7:14]) <= l.Max*l.Permit && charged >= 0 && charged <= 1<<52
		}
		if len(text) == 21 {
			return units(text[7:14]) <= 1<<52 && units(text[14:21]) <= 1<<52
		}
		return err == nil && used >= 0 && used <= 1<<52
	case algorithm.SlidingWindow:
		if len(text) < 8 {
			return false
		}
		rest, now := cutMoment(text[1:])
		if text[0] == 1 { // used before
			return now && len(rest) == 6 && units(rest)+cost <= l.Max
		}
		return now && text[0] == 0 && stateForm(l, rest)
	default:
		state, now := cutMoment(text)
		return now && len(text) == 20 && stateForm(l, state)
	}
}

// manyForm reports whether texts have the form of a reply of decide_many.lua for one call.
func manyForm(asked redisstore.Reply) bool {
	if len(asked.Texts) == 1 {
		return fastForm(asked.Counters[0].Limit, asked.Texts[0], asked.Calls*asked.Counters[0].Cost)
	}
	for i, text := range asked.Texts {
		state, moment := cutMoment(text)
		if !moment || units(text[:7]) == 0 || !stateForm(asked.Counters[i].Limit, state) {
			return false
		}
	}
	return true
}

// equalForm reports whether values have the form of a reply of decide_equal.lua.
func equalForm(l *algorithm.Limit, values []any) bool {
	if len(values) != 2 {
		return false
	}
	now, whole := values[0].(int64)
	state, text := values[1].(string)
	return whole && text && now > 0 && now < 1<<53 && stateForm(l, state)
}

// units returns a number of six or seven bytes, little-endian.
func units(text string) int64 {
	return int64(binary.LittleEndian.Uint64(append([]byte(text), make([]byte, 8)...)[:8]))
}

// cutMoment removes a time from the start of a text, and reports whether it is one.
func cutMoment(text string) (rest string, ok bool) {
	if len(text) < 7 {
		return "", false
	}
	return text[7:], text[6] < 1<<5 // of 53 bits, the last five stand there
}

// bucketForm reports whether a text has the form of a bucket's state.
func bucketForm(state string) bool {
	return len(state) == 39 && units(state[7:14]) <= 1<<52 && units(state[14:20]) > 0 && units(state[20:25]) > 0 &&
		units(state[25:32]) <= 1<<52 && units(state[32:]) < 1<<53
}

func stateForm(l *algorithm.Limit, state string) bool {
	_, moment := cutMoment(state)
	switch {
	case state == "":
		return true
	case !moment:
		return false
	case l.Kind == algorithm.TokenBucket:
		return bucketForm(state)
	case l.Kind == algorithm.SlidingWindow:
		if len(state) < 19 || len(state)%6 != 1 {
			return false
		}
		held := units(state[13:19])
		for at := 19; at < len(state); at += 6 {
			held += units(state[at+1:at+6] + "\x00")
			if age := (state[0] - state[at]) % 64; age < 1 || age > 32 {
				return false
			}
		}
		return held == units(state[7:13])
	default:
		return len(state) == 13
	}
}

// integers reports whether these are n integers.
func integers(values []any, n int) bool {
	return len(values) == n && !slices.ContainsFunc(values, func(value any) bool { _, whole := value.(int64); return !whole })
}
