package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/audit"
	"github.com/accesslimit/accesslimit/core/internal/background"
	"github.com/accesslimit/accesslimit/core/internal/banlist"
	"github.com/accesslimit/accesslimit/core/internal/knownbans"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
	"github.com/accesslimit/accesslimit/core/internal/overrides"
	"github.com/accesslimit/accesslimit/core/internal/quote"
	"github.com/accesslimit/accesslimit/core/internal/thresholds"
)

// operations are what operators ask and do. They are nil in a Limiter that New did not make.
type operations struct {
	store      operatedStore
	keyHead    string
	names      operatedNames
	failures   *storeFailures
	log        *operatorlog.Log
	tasks      background.Runner
	audits     *audit.Recorder
	bans       *banlist.Bans
	known      *knownbans.Table // nil without Redis
	overrides  overrides.Tables
	thresholds *thresholds.Watch[Limit] // nil without Options.OnThreshold
}

// operatedStore is what operators need of a store.
type operatedStore interface {
	Ban(ctx context.Context, key []byte, span int64) (ends int64, changed bool, err error)
	Reset(ctx context.Context, keys ...[]byte) (changed bool, err error)
}

// operatedNames is what operators need to know about the rules of a name.
type operatedNames interface {
	overridable(name string) (own Limit, ok bool)
	ignoresBans(name string) bool
	banAfter(name string) int
}

// check checks the name and the subject that an operator passes.
func (o *operations) check(name, subject string) error {
	switch {
	case o == nil:
		return errNoLimiter
	case name == "":
		return &RuleError{Field: "name", Value: name, Why: "must say what is limited"}
	}
	return checkSubject(name, subject)
}

// reset forgets keys of a subject, all at once, and records who did so.
func (o *operations) reset(ctx context.Context, what, name, subject string, keys ...[]byte) (changed bool, err error) {
	began := time.Now()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if len(keys) > 0 {
		changed, err = o.store.Reset(ctx, keys...)
		err = o.failures.errorOf(name, err)
	}
	o.audits.Acted(ctx, audit.Act{Began: began, What: what, Rule: name, Subject: subject}, changed, err)
	return changed, err
}

// stillHolds returns the error of an attempt to lift a ban or a block that may still hold. If that
// is because the store did not answer, the error says who still refuses the subject.
func (o *operations) stillHolds(err error, what, subject string, key []byte) error {
	var failed *StoreError
	if !errors.As(err, &failed) {
		return err
	}
	who := "each process that knows it"
	if o.known.Lasts(key) > 0 {
		who = "this process, and each other one that knows it,"
	}
	return &StoreError{failed.Class, fmt.Errorf("%w: %s may still be in force: %s refuses %s until Redis answers without it",
		failed.Err, what, who, quote.Unprintable(subject))}
}
