package driver

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/agree/wall"
)

// kinds are all kinds of operations. The first is in every history.
var kinds []kind

func init() {
	kinds = []kind{
		{"allow", 10, "", false, func(h *history, p *process, o operation) {
			ctx, cancel := context.WithCancel(context.Background())
			if o.choice%50 == 0 {
				cancel()
			}
			defer cancel()
			n := o.n
			if o.choice%60 == 1 {
				n = [...]int{0, -1, math.MaxInt}[o.choice/60%3]
			}
			d, err := p.counters[o.of].AllowN(ctx, subject(o.subject), n)
			h.decided(o, d, err)
		}},
		{"call", 20, "", false, (*history).call},
		{"peek", 1, "", false, func(h *history, p *process, o operation) {
			d, err := p.counters[o.of].Peek(context.Background(), subject(o.subject))
			h.decided(o, d, err)
		}},
		{"upto", 3, "", false, func(h *history, p *process, o operation) {
			granted, d, err := p.counters[o.of].AllowUpTo(context.Background(), subject(o.subject), o.n)
			h.notef("granted %d", granted)
			h.decided(o, d, err)
		}},
		{"charge", 2, "", false, func(h *history, p *process, o operation) {
			d, err := p.counters[o.of].Charge(context.Background(), subject(o.subject), o.n)
			h.decided(o, d, err)
		}},
		{"with", 2, "", false, func(h *history, p *process, o operation) {
			limit := h.counters[o.of].limits[0]
			limit.Max = 1 + o.choice%20
			d, err := p.counters[o.of].With(limit).AllowN(context.Background(), subject(o.subject), o.n)
			h.decided(o, d, err)
		}},
		{"refund", 8, " allow upto charge with note reserve ", false, func(h *history, p *process, o operation) {
			if d, ok := h.decisions[o.ref]; ok {
				h.notef("%s", showError(p.limiter.Refund(context.Background(), d, min(o.n, 1+o.choice%7))))
			}
		}},
		{"open", 4, "", false, func(h *history, p *process, o operation) {
			b, d, err := p.counters[o.of].Open(context.Background(), subject(o.subject), o.n)
			if h.decided(o, d, err); b != nil {
				h.bills[o.id] = bill{b, o.of}
			}
		}},
		{"add", 1, " open ", false, func(h *history, _ *process, o operation) {
			if b, ok := h.bills[o.ref]; ok {
				h.notef("%s", showError(b.Add(context.Background(), o.n)))
			}
		}},
		{"settle", 3, " open ", false, func(h *history, p *process, o operation) {
			b, ok := h.bills[o.ref]
			if !ok {
				return
			}
			if o.choice%2 == 0 {
				resumed, err := p.counters[b.of].Resume(b.Token())
				if err != nil {
					h.notef("%s", showError(err))
					return
				}
				b.Bill = resumed
			}
			if o.choice%7 == 0 {
				h.notef("cancel %s", showError(b.Cancel(context.Background())))
				return
			}
			h.notef("%s", showError(b.Settle(context.Background(), o.n-1)))
		}},
		{"reset", 2, "", true, func(h *history, p *process, o operation) {
			changed, err := p.counters[o.of].Reset(context.Background(), subject(o.subject))
			h.notef("%t %s", changed, showError(err))
		}},
		{"reserve", 3, "", false, func(h *history, p *process, o operation) {
			d, err := p.pacer.Reserve(context.Background(), subject(o.subject), o.n)
			h.decided(o, d, err)
		}},
		{"acquire", 3, "", false, func(h *history, p *process, o operation) {
			ctx, cancel := context.WithCancel(context.Background())
			h.cancels[o.id] = cancel
			go func() {
				defer cancel()
				d, err := p.pacer.TryAcquire(ctx, subject(o.subject), o.n, o.span)
				h.laterf("turn %d: %s %s", o.id, showError(err), show(d))
			}()
		}},
		{"leave", 1, " acquire ", false, func(h *history, _ *process, o operation) {
			if leave, ok := h.cancels[o.ref]; ok {
				leave()
			}
		}},
		{"note", 2, "", false, func(h *history, p *process, o operation) {
			d, err := p.log.AllowN(context.Background(), subject(o.subject), o.n, strings.Repeat("n", o.choice%5))
			h.decided(o, d, err)
		}},
		{"records", 1, "", false, func(h *history, p *process, o operation) {
			all, err := p.log.Records(context.Background(), subject(o.subject))
			h.notef("%s", showError(err))
			for _, r := range all {
				h.notef("%s %d %q", since(r.Time), r.Cost, r.Note)
			}
		}},
		{"hold", 2, "", false, func(h *history, p *process, o operation) {
			release, d, err := p.slots.Hold(context.Background(), subject(o.subject))
			h.decided(o, d, err)
			h.releases[o.id] = release
		}},
		{"release", 2, " hold ", false, func(h *history, _ *process, o operation) {
			if release, ok := h.releases[o.ref]; ok {
				release()
			}
		}},
		{"end", 6, " call ", false, func(h *history, _ *process, o operation) {
			if end, ok := h.ends[o.ref]; ok {
				close(end)
				delete(h.ends, o.ref)
			}
		}},
		{"own", 2, "", false, func(h *history, p *process, o operation) {
			w := httptest.NewRecorder()
			p.own[o.choice%len(p.own)].ServeHTTP(w, h.request(o, "/own"))
			h.reply(w)
		}},
		{"ban", 1, "", false, func(h *history, p *process, o operation) {
			h.acted = true
			changed, err := p.operator.Ban(by(o), h.named(o), h.markable(o), o.span)
			h.notef("%t %s", changed, showError(err))
		}},
		{"unban", 1, "", false, func(h *history, p *process, o operation) {
			h.acted = true
			changed, err := p.operator.Unban(by(o), h.named(o), h.markable(o))
			h.notef("%t %s", changed, showError(err))
		}},
		{"override", 2, "", false, func(h *history, p *process, o operation) {
			h.acted = true
			overrides, err := p.operator.Overrides(h.named(o))
			if err != nil {
				h.notef("%s", showError(err))
				return
			}
			value := operate.Override{Note: "because"}
			limit := h.own[h.named(o)]
			switch {
			case o.choice%5 == 0:
				value.Unlimited = true
			case o.choice%5 == 1 || limit == core.Limit{}:
				value.Blocked = true
			default:
				override(&value, limit, o.n)
			}
			// In the newer version, the end does not depend on steps. In the older one, it was that of a millisecond.
			if o.choice%3 == 0 && !h.stepped {
				value.Until, h.ending = h.now().Add(o.span).Truncate(time.Millisecond).Add(999*time.Microsecond), true
			}
			h.notef("%s", showError(overrides.Set(by(o), h.markable(o), value)))
		}},
		{"unoverride", 1, "", false, func(h *history, p *process, o operation) {
			h.acted = true
			overrides, err := p.operator.Overrides(h.named(o))
			if err != nil {
				h.notef("%s", showError(err))
				return
			}
			existed, err := overrides.Remove(by(o), h.markable(o))
			h.notef("%t %s", existed, showError(err))
		}},
		{"forget", 2, "", true, func(h *history, p *process, o operation) {
			changed, err := p.operator.Reset(by(o), h.named(o), h.markable(o))
			h.notef("%t %s", changed, showError(err))
		}},
		{"explain", 2, "", false, func(h *history, p *process, o operation) {
			r := h.request(o, "")
			x, err := p.operator.Explain(context.Background(), operate.Call{
				Method: r.Method, Host: r.Host, Path: r.URL.String(), RemoteAddr: r.RemoteAddr, Header: r.Header,
			})
			h.notef("%s %s", showError(err), showExplanation(x, false))
		}},
		{"inspect", 1, "", false, func(h *history, p *process, o operation) { h.inspect(p, o.subject) }},
		{"replace", 2, "", false, func(h *history, p *process, o operation) {
			h.notef("%s", showError(p.set.Replace(fmt.Sprint("v", o.choice%5), h.versions[o.choice%len(h.versions)]...)))
		}},
		{"step", 1, "", true, func(h *history, _ *process, o operation) {
			if h.ending {
				return
			}
			by := o.span
			h.stepped = true
			switch o.choice % 8 {
			case 0:
				by = 24 * time.Hour
			case 1:
				by = 31 * 24 * time.Hour
			case 2, 3, 4, 5:
				by = -by
			case 6:
				by = -25 * time.Hour
			}
			h.notef("by %v", by)
			h.step(by, o.choice%3 == 0)
		}},
		{"outage", 1, "", true, func(h *history, _ *process, o operation) {
			if h.client != nil {
				h.client.down.Store(o.choice%2 == 0)
			}
		}},
		{"keys", 1, "", false, func(h *history, _ *process, _ operation) {
			if h.client != nil {
				h.notef("%v", h.client.expiries())
			}
		}},
	}
}

// now returns the time by the clock that counts.
func (h *history) now() time.Time {
	if h.client != nil {
		return h.client.now()
	}
	return time.Now().Add(wall.Ahead())
}

// step sets the clock that counts ahead, or back, and perhaps that of the processes beside it.
func (h *history) step(by time.Duration, processes bool) {
	if h.client != nil {
		h.client.expire() // what a step back must not bring back
		h.client.ahead.Add(int64(by))
	}
	if h.client == nil || processes {
		wall.Set(wall.Ahead() + by)
	}
	time.Sleep(11 * time.Millisecond) // until the process looks at its clock
}

// by returns the context of an operator.
func by(o operation) context.Context {
	return operate.WithActor(context.Background(), fmt.Sprint("operator", o.choice%2), "because")
}

// named returns the name of a rule that operators act on, or "".
func (h *history) named(o operation) string {
	names := h.names()
	if len(names) == 0 {
		return ""
	}
	return names[o.choice%len(names)]
}

// markable returns the subject of an act. It is an address only if the rule counts by addresses: a mark
// on one holds for all rules now.
func (h *history) markable(o operation) string {
	if slices.Contains(h.byIP, h.named(o)) {
		return subject(o.subject)
	}
	return subject(o.subject % 2)
}

// names returns the names of rules that operators act on.
func (h *history) names() []string { return slices.Sorted(maps.Keys(h.obeying)) }
