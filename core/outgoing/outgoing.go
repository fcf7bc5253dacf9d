package outgoing

import (
	"net/http"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Turns hands out turns to calls that go out. Make one for each server with [New] when the service
// starts. It is safe for concurrent use.
type Turns struct {
	rule     Rule
	prepared limiter.Outgoing // the rule as the limiter counts it
	parts    *limiter.Parts
	lines    lines // of calls that wait for slots
	lookouts lines // of calls that wait for turns: the first looks for pauses
	paces    paces
	// unrecorded has the pauses that only this process knows, and is to record.
	unrecorded unrecorded
}

// New returns the [Turns] of a rule. The error is a *core.RuleError, or joins one for each mistake. It
// is a mistake, too, if another rule of this name is attached to the Limiter with another limit.
func New(l *core.Limiter, rule Rule) (*Turns, error) {
	inside := (*limiter.Limiter[core.Rule])(l)
	front := inside.Front()
	if front == nil {
		return nil, &core.RuleError{Field: "limiter", Why: limiter.NeverMade}
	}
	rule, err := rule.withDefaults()
	if err != nil {
		return nil, err
	}
	prepared, err := front.Outgoing(rule.counted())
	if err != nil {
		return nil, err
	}
	return &Turns{rule: rule, prepared: prepared, parts: inside.Parts()}, nil
}

// KeyOf returns the key of a request, by the rule's Key and Resource, for [Turns.Take].
func (t *Turns) KeyOf(r *http.Request) string {
	key := t.rule.Key(r)
	if t.rule.Resource == nil || key == "" {
		return key
	}
	return withResource(key, t.rule.Resource(r))
}

// turnCounter returns the counter of a key's turns, at the key's pace.
func (t *Turns) turnCounter(key string) algorithm.Counter {
	return t.counterOf(key, t.paces.of(key, t.prepared.Counted.Limits[0]), "")
}

// counterOf returns the counter of a limit for a key. mark is the holder of a slot.
func (t *Turns) counterOf(key string, of *engine.Limit, mark string) algorithm.Counter {
	rule := t.prepared.Counted
	return algorithm.Counter{
		Key: rediskey.Append(nil, t.parts.KeyHead, key, of.KeyTail), Limit: of.Compiled, Cost: 1, Mark: mark,
		Required: rule.Required, LocalShare: rule.LocalShare, Personal: true,
	}
}
