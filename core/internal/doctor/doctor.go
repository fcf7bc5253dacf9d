// Package doctor examines a Redis that holds limits: whether it keeps what it is given, who may do what
// there, and how fast it answers. It sends ordinary commands on connections of the service's own
// client, each bounded in time whatever that client's options are, so that a server which hangs is
// a finding too. The only keys that it writes are a probe and a few counters, which it deletes. It
// writes none to a server whose memory is nearly full, because that could evict others.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/losses"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Note    Level = "note"    // worth knowing, or could not be examined
	Warning Level = "warning" // something is lost, or slow, when something else happens
	Problem Level = "problem" // limits do not hold, or soon will not
)

// Finding is what one examination found. operate.Finding, which has the same fields, describes them.
type Finding struct {
	Level  Level
	Code   string
	Server string
	Text   string
	Do     string
}

// Patient is the Redis to examine.
type Patient struct {
	Client  redis.UniversalClient
	Prefix  string
	Timeout time.Duration // of each command
	// Decide decides a call by a limit that admits it, as calls of the service are decided.
	Decide func(ctx context.Context, subject string) error
	// Forget deletes the counter of a subject whose calls were decided.
	Forget func(ctx context.Context, subject string) error
	// Losses returns what servers have lost in the last day.
	Losses func(ctx context.Context) ([]losses.Loss, error)
	// Document returns why the document with the rules cannot be read, or nil if it can be
	// read or there is none.
	Document func(ctx context.Context) error
}

// exam collects the findings about a patient.
type exam struct {
	*Patient
	servers  []*server
	findings []Finding
}

// Examine examines a patient. It returns at least one finding. If a server does not answer, there are
// no others about it. If the context ends, it returns what it has found so far.
func Examine(ctx context.Context, p Patient) []Finding {
	e := &exam{Patient: &p}
	e.connect(ctx)
	for _, s := range e.servers {
		for _, examine := range []func(*exam, context.Context, *server){
			(*exam).version, (*exam).kind, (*exam).eviction, (*exam).memory, (*exam).persistence, (*exam).replication,
			(*exam).rights, (*exam).encryption, (*exam).user,
		} {
			if failure.CallersEnd(ctx) == nil {
				examine(e, ctx, s)
			}
		}
	}
	if len(e.servers) > 0 && failure.CallersEnd(ctx) == nil {
		e.clocks()
		e.cluster(ctx)
		e.proxy(ctx)
		e.writers(ctx)
		e.lost(ctx)
		e.document(ctx)
		e.speed(ctx)
	}
	return e.findings
}

// add adds a finding about a server, or about all of them for nil.
func (e *exam) add(level Level, code string, s *server, text, do string) {
	f := Finding{Level: level, Code: code, Text: text, Do: do}
	if s != nil {
		f.Server = s.addr
	}
	e.findings = append(e.findings, f)
}

// unseen adds that something could not be examined, because our user lacks a right or Redis does not
// know the command.
func (e *exam) unseen(code string, s *server, what string, err error) {
	e.add(Note, code, s, fmt.Sprintf("%s is not known: %v", what, err), "")
}

// ask calls do with a context that ends after the patient's Timeout, and does not wait longer even
// if do ignores that, as the dialers and hooks of the client's owner may.
func ask[T any](ctx context.Context, e *exam, do func(context.Context) (T, error)) (value T, err error) {
	bounded, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go panics.Guard(func() {
		value, err := do(bounded)
		answers <- answer{value, err}
	}, func(err error) { answers <- answer{err: err} })()
	select {
	case a := <-answers:
		if a.err == nil || failure.CallersEnd(bounded) == nil {
			return a.value, a.err
		}
	case <-bounded.Done():
	}
	return value, cmp.Or(failure.CallersEnd(ctx), fmt.Errorf("nothing came back within %v", e.Timeout))
}

// askText runs a command whose reply is a text on a server.
func (e *exam) askText(ctx context.Context, on commander, args ...any) (string, error) {
	return ask(ctx, e, func(ctx context.Context) (string, error) { return on.Do(ctx, args...).Text() })
}
