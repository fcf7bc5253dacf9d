package operate

import (
	"context"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/doctor"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/fleetrules"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Finding is what [Operator.Doctor] has found.
type Finding struct {
	// Level is "ok", "note", "warning" or "problem". With a problem, limits do not hold or soon will
	// not. A warning is about what is lost or slow when something else happens. A note is worth
	// knowing, or says what could not be examined.
	Level string `json:"level"`
	// Code is what was examined: connection, version, client, eviction, memory, persistence, replicas,
	// rights, tls, user, clock, cluster, proxy, writers, losses, document, latency or decisions.
	Code string `json:"code"`
	// Server is the address of the server, or "" for all.
	Server string `json:"server,omitempty"`
	// Text says what was found, and Do what to do, if anything.
	Text string `json:"text"`
	Do   string `json:"do,omitempty"`
}

// Doctor examines the Redis of the Limiter, each of its servers: whether it loses counters, bans or
// rules or has lost some in the last day, exactly which right the user lacks, whether it is reached
// as it should be, and how fast it is. A server that does not answer is a finding, and so is what
// cannot be examined. Without Redis, that is the only finding.
//
// Doctor takes some seconds. It decides up to 4,096 calls on 32 counters of the name "doctor",
// writes a probe, and deletes all of these. It writes nothing if nine tenths of maxmemory are used.
// It reads the names of up to 100,000 keys of each server. Each command is bounded by
// Options.Timeout. For everything, the Redis user also needs +info, +config|get, +scan, +acl|whoami
// and in a cluster +cluster|info; without them, a note says what is not known. Danger: on a slow
// Redis its calls time out, which counts in Stats and may open the breaker for real calls, so use a
// Limiter of its own in a service.
//
// If ctx ends, Doctor returns its error and the findings so far. For a Limiter that was never made,
// the error is a *[core.RuleError].
func (o *Operator) Doctor(ctx context.Context) ([]Finding, error) {
	if err := o.made(); err != nil {
		return nil, err
	}
	if o.parts.Client == nil {
		return []Finding{{Level: string(doctor.Note), Code: "connection", Text: "there is no Redis: counts stay in this process", Do: "set Options.Redis"}}, nil
	}
	const name = "doctor"
	limit := algorithm.Probing()
	counter, err := o.limiter.Counter(name, core.PerSecond(1_000_000).Fixed())
	if err != nil {
		return nil, err
	}
	tail := rediskey.LimitTail(name, false, &limit)
	rules := fleetrules.NewStore(o.parts.Client, o.parts.Prefix, o.parts.Timeout)
	defer rules.Close()
	found := doctor.Examine(ctx, doctor.Patient{
		Client: o.parts.Client, Prefix: o.parts.Prefix, Timeout: o.parts.Timeout,
		Decide: func(ctx context.Context, subject string) error {
			_, err := counter.Allow(ctx, subject)
			return err
		},
		Forget: func(ctx context.Context, subject string) error { // not Counter.Reset, which the audit would have
			_, err := o.parts.Store.Reset(ctx, rediskey.Append(nil, o.parts.KeyHead, subject, tail))
			return err
		},
		Losses: o.parts.Losses.Recent,
		Document: func(ctx context.Context) error {
			_, err := rules.Read(ctx)
			return err
		},
	})
	all := make([]Finding, len(found))
	for i, f := range found {
		all[i] = Finding{string(f.Level), f.Code, f.Server, f.Text, f.Do}
	}
	return all, failure.CallersEnd(ctx)
}
