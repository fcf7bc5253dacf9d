package core

import (
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"

	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/reference"
	"github.com/accesslimit/accesslimit/core/internal/rulenames"
	"github.com/accesslimit/accesslimit/core/internal/tally"
	"github.com/accesslimit/accesslimit/core/internal/thresholds"
)

// Limiter decides whether calls may go on. Make one for a service with [New] and share it. It is
// safe for concurrent use.
//
// The adapters attach rules to routes; [Limiter.Guard] and [Limiter.Check] prepare rules. Without a
// framework, make a [Counter], [Pacer], [Log] or [Slots] once and call it often.
type Limiter limiter.Limiter[Rule]

// New returns a Limiter. It does not connect, so a service starts while its Redis is down. The
// error is a *[RuleError].
func New(options Options) (*Limiter, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	ips, err := options.ClientIP.compile()
	if err != nil {
		return nil, err
	}
	if client := reflect.ValueOf(options.Redis); client.Kind() == reflect.Pointer && client.IsNil() {
		return nil, &RuleError{Field: "Options.Redis", Value: fmt.Sprintf("(%T)(nil)", options.Redis), Why: "must be a client, or unset"}
	}
	f := new(front)
	l := limiter.New[Rule](limiter.Config{
		Client: options.Redis, Prefix: options.Prefix, Timeout: options.Timeout, OneKeyPerScript: options.OneKeyPerScript,
		MaxKeys: options.MaxKeys, Logger: options.Logger, ClientIPs: ips, References: reference.New(options.ReferenceKeys),
	}, f)
	options.ClientIP, options.ReferenceKeys = ClientIP{}, nil // nobody reads them any more
	f.Parts, f.options = l.Parts(), options
	f.assemble()
	f.logStore()
	return (*Limiter)(l), nil
}

// assemble makes what the front adds to its parts.
func (f *front) assemble() {
	f.takeParts()
	f.calls.New = func() any { return newCall(&f.callParts) }
	f.directs.New = func() any { return newDirectCall(&f.callParts) }
	r := &f.registry
	r.names = rulenames.New(Limit.sharesCounter)
	r.tallies, r.log, r.options = f.tallies, f.Log, &f.options
	r.marks, r.writeChange = f.Marks, f.Audits.RulesChanged
}

// takeParts makes the parts for calls.
func (f *front) takeParts() {
	p := f.Parts
	f.callParts = callParts{
		engine: &p.Engine, ids: &p.CallIDs, source: FromMemory, options: f.options, log: p.Log, failures: &storeFailures{&p.Failures, p.Log},
		marks: p.Marks, refunds: &p.Refunds, limits: &f.registry.limits, clientIPs: p.ClientIPs, logins: new(logins), references: p.References,
		inFlight: p.InFlight,
	}
	f.dryRuns = newDryRuns(&f.callParts, p.Behind)
	if p.Redis != nil {
		f.source = FromRedis
	}
	f.tallies = tally.New(string(Allowed), string(f.source), p.Tops)
	if report := thresholdReports(f.options.OnThreshold); report != nil {
		f.thresholds = thresholds.New(p.Board, p.KeyHead, p.Log, report)
	}
}

// logStore logs where counts are kept, because a service that was given no Redis by mistake seems
// to work.
func (f *front) logStore() {
	if f.source == FromMemory {
		f.Logger.Info("accesslimit: no Redis here: counts stay in this process")
	} else {
		f.Logger.Info("accesslimit: counts go to Redis, which has not been tried yet: Limiter.Ping tries it", slog.String("prefix", f.Prefix))
	}
}

// Close ends the work in the background: dry runs, sweeping, following bans and overrides, renewing the
// slots of calls in flight, reporting thresholds, giving back charges and leases, and adding to the lists of
// Top, for at most Timeout each. The Redis client stays open. Call Close when no call is
// in flight any more. Slots that are held then, or taken later, are free after their Window, though
// their calls go on.
func (l *Limiter) Close() {
	f := l.mustFront()
	f.Behind.Close(f.Timeout)
	f.thresholds.Close(f.Timeout)
	f.Parts.Close()
}

// IPSubject returns the subject by which this Limiter's rules count an address: ip:203.0.113.7,
// ip:2001:db8::/64, or ip:unknown for the zero Addr. Operators pass it to Ban of package operate, or to
// [Guard.Reset]. A [KeyFunc] uses it for an address from elsewhere; [ByIP] counts by the client's.
// IPv6 addresses are grouped by ClientIP.IPv6Prefix, /64 unless it is set.
func (l *Limiter) IPSubject(addr netip.Addr) string {
	return l.mustFront().ClientIPs.Subject(addr)
}

// front is what only core knows of a limiter: rules, guards, handles. The rest is in its
// limiter.Parts, which the packages beside this one reach, too.
type front struct {
	*limiter.Parts
	callParts
	calls    callPool
	directs  directPool
	registry registry
	outgoing limiter.OutgoingTable
}

// front returns the front of a limiter, or nil if New did not make it.
func (l *Limiter) front() *front {
	f, _ := (*limiter.Limiter[Rule])(l).Front().(*front)
	return f
}

// mustFront returns the front of a limiter. It panics if New did not make it.
func (l *Limiter) mustFront() *front {
	f := l.front()
	if f == nil {
		panic(errNoLimiter)
	}
	return f
}

// Attached implements limiter.Front.
func (f *front) Attached() (rules []limiter.AttachedRule[Rule], notListed int) {
	guards, notListed := f.registry.attached.All()
	for _, g := range guards {
		bound, version, place := g.inForce()
		for _, b := range bound {
			name := b.displayName()
			of := limiter.AttachedRule[Rule]{Rule: b.Rule.clone(), Place: place(name), Version: version, Key: g.writtenKey(name), InHandler: b.inHandler, Outgoing: b.outgoing}
			of.Rule.Limit = b.Rule.limit()
			for _, named := range b.namedRules() {
				of.Names = append(of.Names, named.name)
			}
			rules = append(rules, of)
		}
	}
	return rules, notListed
}

// CheckSubject implements limiter.Front.
func (f *front) CheckSubject(name, subject string) error { return checkSubject(name, subject) }

// Failed implements limiter.Front.
func (f *front) Failed(name string, err error) error { return f.failures.errorOf(name, err) }

// Pauses implements limiter.Front.
func (f *front) Pauses(name string) bool { return f.registry.names.Outgoing(name) }

// PausingRules implements limiter.Front.
func (f *front) PausingRules() []string { return f.registry.names.AllOutgoing() }
