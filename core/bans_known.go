package core

import (
	"errors"
	"fmt"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Each process knows bans and blocks that hold while Redis does not answer: see package knownbans.
// Package localfirst notes those that calls meet, and bans that this process imposes. Changes of
// overrides do not pass through it, so they are noted here.

// startBanWatch begins to read the lists of bans and overrides.
func (l *Limiter) startBanWatch() {
	if l.banWatch != nil {
		l.banWatch.Start()
	}
}

func (l *Limiter) closeBanWatch() {
	if l.banWatch != nil {
		l.banWatch.Close()
	}
}

// banWatchFailed logs that a right is missing. It logs nothing while Redis does not answer, because
// calls log that.
func (l *Limiter) banWatchFailed(err error) {
	if l.banWatchOff.turnOff(err) {
		l.operatorLog.BanWatchOff(err)
	}
}

// knownToLast returns for how many microseconds a ban or block that this process knows still holds,
// or 0.
func (l *Limiter) knownToLast(key []byte) int64 {
	if l.local == nil {
		return 0
	}
	return l.local.Bans.Lasts(key)
}

// noteOverride notes the effect of Set, or of Remove if set is nil, on a subject.
func (o Overrides) noteOverride(subject string, set *algorithm.Override, err error) {
	local := o.limiter.local
	switch key := o.key(subject); {
	case local == nil:
	case set != nil && set.What == algorithm.OverrideBlocked:
		if err == nil {
			local.Bans.SawStoreTime(set.Set)
		}
		if err == nil || mayHaveActed(err) {
			found := algorithm.FoundOverride{Ends: set.Ends}
			local.Bans.Remember(key, found.Lasts(local.Bans.StoreTime()), true)
		}
	case err == nil:
		local.Bans.Lift(key)
	}
}

// key returns the key of a subject's override.
func (o Overrides) key(subject string) []byte {
	return rediskey.Append(nil, o.limiter.keyHead, subject, rediskey.OverrideTail(o.name))
}

// stillHolds returns the error of an attempt to lift a ban or a block that may still hold. If that
// is because the store did not answer, the error says who still refuses the subject.
func (l *Limiter) stillHolds(err error, what, subject string, key []byte) error {
	var failed *StoreError
	if !errors.As(err, &failed) {
		return err
	}
	who := "each process that knows it"
	if l.knownToLast(key) > 0 {
		who = "this process, and each other one that knows it,"
	}
	return &StoreError{failed.Class, fmt.Errorf("%w: %s may still be in force: %s refuses %s until Redis answers without it",
		failed.Err, what, who, printableText(subject))}
}
