package rulefile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/fleetrules"
	"github.com/accesslimit/accesslimit/core/internal/panics"
	"github.com/accesslimit/accesslimit/core/internal/ruleorigin"
)

// Follow returns a Set with the rules of a document, for this Limiter, and keeps it at the
// document's latest version until [Set.Close]. It looks for a new version about once a second, with
// a small command. Guards of the Set use a new version from then on, as after [Set.Reload].
//
//	document, err := rulefile.NewDocument(rdb, "")
//	...
//	set, err := rulefile.Follow(limiter, rulefile.Functions{}, document, rulefile.Files("limits.yaml"))
//
// If there is no document, or Redis does not answer, or the document is wrong, the Set begins with
// the rules of the fallbacks, taken together, so that a service can start. They must have every
// name that is attached, and a document that lacks one of their names is wrong. Without a fallback,
// Follow returns an error. The fallbacks are checked even if the document can be used. Otherwise a
// mistake in them would only be noticed when they are needed. Once a version of the document is in
// force, their rules are not used any more.
//
// From then on, a version stays in force until there is a later one that is correct:
//
//   - if Redis does not answer; then it is asked less and less often, down to about once in 8 s,
//   - if the document is gone, or the key holds something else or the form of another release,
//   - if a new version has a mistake, or a field or a function that this process does not know, or
//     lacks a rule that is attached or in the fallback,
//   - if Redis has an older version than the one in force, because it lost the latest writes in a
//     failover, or was restored from a backup. A version with a smaller number that was written
//     later is used: that is how a lost document is published anew.
//
// The Limiter's Stats show each of these until it is over, in [core.RuleSetStats].Problem and
// LastError. The log has one line when it begins and one when it is over. A document that is damaged
// behind its first line is found by processes that start, and by [Set.Reload].
func Follow(limiter *core.Limiter, functions Functions, document *Document, fallback ...Fallback) (*Set, error) {
	if err := functions.check(); err != nil {
		return nil, err
	}
	if document == nil || document.store == nil {
		return nil, errors.New("rulefile: Follow needs a document, which NewDocument makes")
	}
	var reserve *loaded
	if len(fallback) > 0 {
		var err error
		if reserve, err = loadFallback(limiter, functions, fallback); err != nil {
			return nil, err
		}
	}
	s, err := newSet(limiter, functions, nil, nil)
	if err != nil {
		return nil, err
	}
	s.follows = document.prefix
	return s, s.follow(document, reserve)
}

// Document returns the version of the document that is in force. It is the zero Version while a
// fallback is, or if the Set follows no document.
func (s *Set) Document() Version { return versionOf(s.present.Load().document) }

// follow keeps the set at the latest version of a document. It begins with a fallback if it has to.
func (s *Set) follow(document *Document, fallback *loaded) error {
	ctx, stop := context.WithCancel(context.Background())
	f := &follower{set: s, document: document, fallback: fallback, wrong: errNoDocument}
	defer s.logs.write()
	if err := f.begin(ctx); err != nil {
		stop()
		return err
	}
	s.reload = func() error {
		defer s.logs.write()
		return f.look(ctx, true)
	}
	ended := make(chan struct{})
	go panics.Guard(func() {
		defer close(ended)
		f.run(ctx)
	}, s.panicked)()
	s.stop = func() {
		stop()
		<-ended
	}
	return nil
}

// follower keeps a set at the latest version of a document.
type follower struct {
	set      *Set
	document *Document
	fallback *loaded // or nil

	mu       sync.Mutex      // held during a look
	inForce  fleetrules.Head // the zero Head while a fallback is in force
	seen     fleetrules.Head // the version in Redis when it last answered; at first the zero Head
	wrong    error           // why seen is not in force, or nil
	reported string          // the error that was reported and persists, or ""
}

// maxPatience is how many periods pass between two looks while Redis does not answer.
const maxPatience = 8

// run looks at the document until the context ends. The time between two looks is random, so that
// the processes of a fleet do not look all at once.
func (f *follower) run(ctx context.Context) {
	patience := time.Duration(1)
	for {
		wait := patience * f.document.period
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait*3/4 + rand.N(wait/2)):
		}
		err := panics.Catch(func() error { return f.look(ctx, false) })
		if panics.Is(err) {
			f.set.panicked(err)
		}
		if f.set.logs.any() {
			f.set.inBackground(f.set.logs.write)
		}
		if problemOf(err) == ruleorigin.Unread {
			patience = min(2*patience, maxPatience)
		} else {
			patience = 1
		}
	}
}

// begin puts the first rules in force, from the document or else from the fallback.
func (f *follower) begin(ctx context.Context) error {
	err := f.try(ctx, true)
	switch {
	case err == nil:
		return nil
	case f.fallback == nil:
		return fmt.Errorf("rulefile: there are no rules to begin with: %w", err)
	}
	if err := f.set.replace(f.fallback); err != nil {
		return err
	}
	f.report(err)
	return nil
}

// look looks at the document once, and reports what is wrong. It returns why the latest version is
// not in force, or nil. It tries a version that was wrong again only if again is set.
func (f *follower) look(ctx context.Context, again bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.try(ctx, again)
	if ctx.Err() != nil { // the set is closed
		return errors.New("rulefile: the Set is closed")
	}
	f.report(err)
	return err
}

func (f *follower) try(ctx context.Context, again bool) error {
	head, err := f.document.store.Head(ctx)
	switch {
	case err != nil:
		return storeError(err)
	case head != f.seen || again:
		return storeError(f.take(ctx, head, again))
	default:
		return f.wrong
	}
}

// take puts the version with this head, or a later one, in force. It returns why it did not, or
// nil. If the version is already in force, or older, take reads it only if again is set, because it
// may be damaged behind its head.
func (f *follower) take(ctx context.Context, head fleetrules.Head, again bool) error {
	doc := fleetrules.Doc{Head: head}
	var err error
	if head.Follows(f.inForce) || again {
		doc, err = f.document.store.Read(ctx)
	}
	switch {
	case err == nil:
		f.wrong = f.apply(doc)
	case failure.ClassOf(err) == failure.Foreign: // the next look would find the same
		doc.Head, f.wrong = head, storeError(err)
	default:
		return err
	}
	f.seen = doc.Head
	return f.wrong
}

// apply puts a version in force, unless it already is, or is the zero version, or is older.
func (f *follower) apply(doc fleetrules.Doc) error {
	switch {
	case doc.Head == f.inForce && doc.Number > 0:
		return nil
	case doc.Number == 0 && f.inForce.Number == 0:
		return errNoDocument
	case doc.Number == 0:
		return errLost
	case !doc.Follows(f.inForce):
		return fmt.Errorf("rulefile: Redis has version %v of the document, which was not written later than the one in force: %w", doc.Head, errOlder)
	}
	next, err := loadDocument(f.set.limiter, f.set.functions, doc)
	if err == nil {
		err = f.missing(next)
	}
	if err == nil {
		err = f.set.replaceBy(next)
	}
	if err == nil {
		f.inForce = doc.Head
	}
	return err
}

// missing returns an error for each rule of the fallback that a version lacks. The service probably
// attaches that rule. If it did so after the version was put in force, it could not start.
func (f *follower) missing(next *loaded) error {
	var missing problems
	if f.fallback != nil {
		for _, name := range f.fallback.names() {
			if _, ok := next.rules[name]; !ok {
				missing.add(&Error{
					Place: f.fallback.rules[name].place, Rule: name, within: "rule " + quote(name),
					Err: fmt.Errorf("is in the fallback, and missing in version %d of the document", next.document.Number),
				})
			}
		}
	}
	return missing.join()
}

// replaceBy replaces the rules by those of a version.
func (s *Set) replaceBy(next *loaded) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replace(next)
}

// loadDocument loads the rules of a version.
func loadDocument(limiter *core.Limiter, functions Functions, doc fleetrules.Doc) (*loaded, error) {
	next, err := loadSources(limiter, functions, func(wrong *problems) []source {
		return documentSources(fmt.Sprintf("document@%d", doc.Number), doc.Text, wrong)
	})
	if err != nil {
		return nil, err
	}
	next.version, next.document = doc.Head.String(), doc
	return next, nil
}

// report reports an error when it begins, and when it is over.
func (f *follower) report(err error) {
	trouble := ""
	switch {
	case err == nil:
	case problemOf(err) == ruleorigin.Unread: // the next look may find another error
		trouble = string(ruleorigin.Unread)
	default:
		trouble = err.Error()
	}
	if trouble != f.reported {
		f.reported = trouble
		f.set.report(err)
	}
}
