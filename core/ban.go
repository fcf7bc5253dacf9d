package core

import (
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/core/internal/terms"
)

// Ban refuses a subject altogether for a while. A subject that is refused in After consecutive
// windows of the rule is refused for the time For, the next time for twice as long, and so on up to
// Max. The ban is forgotten when Max has passed without another refusal. It holds for the rule's
// Name and the subject under every plan, including Unlimited. It begins after the answer: calls that
// are under way are decided by the limit. The zero value bans nobody. An operator can ban subjects of
// any rule: see package operate.
type Ban struct {
	// After is the number of consecutive windows in which a subject must be refused: 1 to 1000. A
	// window counts once, however many calls are refused in it.
	After int
	// For is the duration of the first ban: 1 ms to 366 days.
	For time.Duration
	// Max is the longest duration of a ban: at least For, which is the default, and at most 366
	// days.
	Max time.Duration
}

// String returns the ban in words, such as "after 3 windows, for 1h".
func (b Ban) String() string {
	if b == (Ban{}) {
		return "nobody"
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
	if b == (Ban{}) {
		return
	}
	if b.After < 1 || b.After > maxBanAfter {
		add("Ban.After", "ban_after", b.After, "must be 1 to 1000 windows")
	}
	if b.For < time.Millisecond || b.For > maxBan {
		add("Ban.For", "ban_for", b.For, "must be 1 ms to 366 days: a ban has an end")
	} else if b.Max != 0 && (b.Max < b.For || b.Max > maxBan) {
		add("Ban.Max", "ban_max", b.Max, "must be unset, or 366 days at most, and no shorter than the first ban")
	}
}

// terms returns the terms of the bans of a rule with this window.
func (b Ban) terms(window time.Duration) *marks.Terms {
	return &marks.Terms{Window: window.Microseconds(), After: int64(b.After), Span: b.For.Microseconds(), Longest: max(b.For, b.Max).Microseconds()}
}
