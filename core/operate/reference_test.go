package operate_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

func TestReferenceInWords(t *testing.T) {
	at := time.Date(2026, 11, 22, 14, 3, 7, 123456000, time.UTC)
	for want, r := range map[string]operate.Reference{
		`refused by "reply" at 2026-11-22T14:03:07.123456Z: limit_exceeded, 0 left of 5/m, wait 12.5s`: {
			Time: at, Rule: "reply", Reason: core.LimitExceeded, Limit: core.PerMinute(5), Wait: 12500 * time.Millisecond,
		},
		`refused by "reply" at 2026-11-22T14:03:07Z: not_logged_in, 5/m`: {
			Time: at.Truncate(time.Second), Rule: "reply", Reason: core.NotLoggedIn, Limit: core.PerMinute(5),
		},
	} {
		if got := r.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
