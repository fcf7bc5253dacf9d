package core

import (
	"context"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/banlist"
)

// BanOf returns the ban of a subject from a rule, as [Limiter.Bans] returns it, and whether one is in
// force. It finds bans that the list misses, too. Without Redis, it does not know who made those.
// Errors are those of [Limiter.Ban].
func (l *Limiter) BanOf(ctx context.Context, rule, subject string) (ban BanEntry, ok bool, err error) {
	if err := l.checkOperated(rule, subject); err != nil {
		return BanEntry{}, false, err
	}
	if err := ctx.Err(); err != nil {
		return BanEntry{}, false, err
	}
	var found banlist.Entry
	if found, ok, err = l.bans.list.Of(ctx, rule, strings.Clone(subject)); err != nil || !ok {
		return BanEntry{}, false, l.storeError(rule, err)
	}
	return l.banEntry(rule, found), true, nil
}
