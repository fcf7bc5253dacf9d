package operate

import (
	"cmp"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/banlist"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// KnownBans returns the bans that this process knows, of a rule, or of all rules of this Limiter
// that obey bans if rule is "": those that it imposed, met in an answer, or read from the lists.
// They hold here while Redis does not answer, when [Operator.Bans] fails. They are in the order of
// the names of the rules, and then of the subjects. Authors, notes and how often a subject was
// banned are not known, and very long subjects are left out. A process knows up to 100,000, and
// 50,000 pauses. Without Redis, Bans returns all, and KnownBans none.
//
// The error is a *[core.RuleError] for a Limiter that was never made.
func (o *Operator) KnownBans(rule string) (all []BanEntry, err error) {
	if err := o.made(); err != nil {
		return nil, err
	}
	rules := []string{rule}
	if rule == "" {
		rules = o.banningRules()
	}
	tails := make(map[string]string, len(rules)) // by rule
	for _, rule := range rules {
		tails[rule] = rediskey.BanTail(rule, false)
	}
	o.parts.Known.Each(func(key string, ends int64, byOperator bool) {
		for rule, tail := range tails {
			if subject, ok := rediskey.Subject(key, o.parts.KeyHead, tail); ok {
				e := banlist.Entry{Subject: subject, ByHand: byOperator}
				e.Ends = ends
				all = append(all, o.banEntry(rule, e))
			}
		}
	})
	if o.parts.Redis != nil {
		o.parts.Pauses.Each(func(of, key string, ends int64) {
			if slices.Contains(rules, of) {
				all = append(all, BanEntry{Rule: of, Subject: key, Until: time.UnixMicro(ends).UTC(), Cause: pausedByServer})
			}
		})
	}
	slices.SortFunc(all, func(a, b BanEntry) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Subject, b.Subject))
	})
	return all, nil
}
