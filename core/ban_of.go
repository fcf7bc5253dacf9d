package core

import (
	"context"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/banlist"
)

// BanOf returns the ban of a subject from a rule, as [Limiter.Bans] would. ok reports whether a ban
// is in force. BanOf also finds bans that are missing from the list. Without Redis, these have no
// author and no note. Errors are those of [Limiter.Ban].
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
