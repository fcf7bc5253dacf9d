package core

import (
	"slices"
	"sync"
	"time"
)

// RuleSetStats is the state of one [RuleSet].
type RuleSetStats struct {
	// Names are the names of the rules that guards follow, sorted.
	Names []string
	// Version is the version in force: what [RuleSet.Replace] was given, or "" before.
	Version string
	// Document is the prefix of the document that the set follows, as rulefile.NewDocument takes
	// it, also while a fallback is in force. It is "" if the set follows none.
	Document string
	// Digest identifies the text of the rules in force. Processes that follow one document, or the
	// same files, limit alike if they have one Digest, even if the text was published twice. If the
	// rules have no text, it is the Version.
	Digest string
	// Since is when this process began to use it.
	Since time.Time
	// Problem is why the latest rules are not in force, or "" if they are. It is "wrong" if they
	// have a mistake, and "unread" if Redis or a file cannot be read, so that nobody knows them. It
	// is "lost" if Redis has lost the document with the rules, or has an older version again: then
	// publish it again. It is "missing" if no document was published yet. The texts are stable, for
	// metrics.
	Problem string
	// LastError describes the Problem, and LastErrorAt is when it was found last.
	LastError   string
	LastErrorAt time.Time
}

// ruleSets are the sets of a limiter that guards follow.
type ruleSets struct {
	mu   sync.Mutex
	sets []setStats
}

// setStats is a [RuleSet], as Stats shows it.
type setStats interface{ currentStats() RuleSetStats }

func (r *ruleSets) add(s setStats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.sets, s) {
		r.sets = append(r.sets, s)
	}
}

func (r *ruleSets) stats() (all []RuleSetStats) {
	r.mu.Lock()
	sets := slices.Clone(r.sets)
	r.mu.Unlock()
	for _, s := range sets {
		all = append(all, s.currentStats())
	}
	return all
}
