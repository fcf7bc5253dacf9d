package core

import (
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/terms"
)

// Ban refuses a subject altogether for a while. A subject that is refused in After consecutive
// windows of the rule is refused for the time For, the next time for twice as long, and so on up to
// Max. The ban is forgotten when Max has passed without another refusal. It holds for the rule's
// Name and the subject under every plan, including Unlimited. Each call then looks at one more key.
// The zero value bans nobody.
type Ban struct {
	// After is the number of consecutive windows in which a subject must be refused: 1 to 1000. A
	// window counts once, however many calls are refused in it.
	After int
	// For is the duration of the first ban: 1 ms to 366 days.
	For time.Duration
	// Max is the longest duration of a ban: at least For, which is the default, and at most 366
	// days.
	Max time.Duration
	// ByHand bans only the subjects that an operator bans: see package operate. The other fields must
	// be unset.
	ByHand bool
}

// String returns the ban in words, such as "after 3 windows, for 1h".
func (b Ban) String() string {
	switch {
	case b == Ban{}:
		return "nobody"
	case b.ByHand:
		return "by hand"
	}
	windows := "windows"
	if b.After == 1 {
		windows = "window"
	}
	text := fmt.Sprintf("after %d %s, for %s", b.After, windows, terms.Span(b.For))
	if b.Max > b.For {
		text += ", up to " + terms.Span(b.Max)
	}
	return text
}

const (
	maxBanAfter = 1000
	maxBan      = algorithm.MaxWindow * time.Microsecond
)

// check adds what is wrong with the ban.
func (b Ban) check(add func(field, code string, value any, why string)) {
	switch {
	case b == Ban{}, b == Ban{ByHand: true}:
		return
	case b.ByHand:
		add("Ban.ByHand", "ban_by_hand", true, "goes without the other fields")
		return
	}
	if b.After < 1 || b.After > maxBanAfter {
		add("Ban.After", "ban_after", b.After, "must be 1 to 1000 windows, unless a ban is by hand alone")
	}
	if b.For < time.Millisecond || b.For > maxBan {
		add("Ban.For", "ban_for", b.For, "must be 1 ms to 366 days: a ban has an end")
	} else if b.Max != 0 && (b.Max < b.For || b.Max > maxBan) {
		add("Ban.Max", "ban_max", b.Max, "must be unset, or 366 days at most, and no shorter than the first ban")
	}
}

// compile converts the ban of a rule with this window into the integers that the stores calculate
// with.
func (b Ban) compile(window time.Duration) algorithm.Limit {
	longest := max(b.For, b.Max)
	return algorithm.Banned(int64(b.After), b.For.Microseconds(), longest.Microseconds(), window.Microseconds())
}
