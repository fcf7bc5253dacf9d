package banwatch

import (
	"cmp"
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/overrides"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// readBans reads a page of a rule's bans.
func (w *Watch) readBans(ctx context.Context, rule, after string) (found int, next string, err error) {
	sent := w.table.Begin()
	page, next, err := w.bans.Page(ctx, rule, after, pageSize) // without the bans of servers that do not answer
	for _, e := range page {
		w.table.SawStoreTime(e.At)
		w.table.RememberAsOf(sent, w.key(e.Subject, rediskey.BanTail(rule, false)), e.Ends-e.At, e.ByHand)
	}
	return len(page), next, err
}

// readBlocks reads a page of a rule's overrides.
func (w *Watch) readBlocks(ctx context.Context, all *overrides.Store, rule, after string) (found int, next string, err error) {
	sent := w.table.Begin()
	page, next, err := all.List(ctx, after, pageSize)
	for _, e := range page {
		w.table.SawStoreTime(e.At)
		if lasts := blockLasts(e.Text, e.At); lasts > 0 {
			w.table.RememberAsOf(sent, w.key(e.Subject, rediskey.OverrideTail(rule)), lasts, true)
		}
	}
	return len(page), next, err
}

func (w *Watch) key(subject, tail string) []byte {
	return rediskey.Append(nil, w.keyHead, subject, tail)
}

// check reads the bans and blocks that are known here but were not confirmed since a time. The
// lists may have lost them, or they were lifted.
func (w *Watch) check(ctx context.Context, since int64) error {
	keys := w.table.Unconfirmed(since, mostChecks)
	if len(keys) == 0 {
		return nil
	}
	sent := w.table.Begin()
	return w.redis.Operate(ctx, func(ctx context.Context) (failed error) {
		now, failed := w.redis.Now(ctx, keys[0]) // after a timeout, a ban may be known before the server's clock
		if failed == nil {
			w.table.SawStoreTime(now)
		}
		for i, value := range w.redis.GetAll(ctx, keys) {
			if failed = cmp.Or(failed, value.Err); value.Err == nil {
				w.confirm(sent, []byte(keys[i]), value.Text)
			}
		}
		return failed
	})
}

// confirm records the text that a key held in the answer to a read that was sent at the given time.
// The table already knows who imposed the ban.
func (w *Watch) confirm(sent int64, key []byte, text string) {
	now := w.table.StoreTime()
	lasts := blockLasts(text, now)
	if ban, err := algorithm.ReadBan(text, now); err == nil {
		lasts = ban.Ends - now
	}
	if lasts > 0 {
		w.table.RememberAsOf(sent, key, lasts, false)
	} else {
		w.table.ForgetAsOf(sent, key)
	}
}

// blockLasts returns for how long a stored override still blocks its subject, or 0 if it does not.
func blockLasts(text string, now int64) int64 {
	o, err := algorithm.ReadOverride(text)
	if err != nil || o.What != algorithm.OverrideBlocked {
		return 0
	}
	found := algorithm.FoundOverride{Ends: o.Ends}
	return max(0, found.Lasts(now))
}
