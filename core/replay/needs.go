package replay

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/accesslimit/accesslimit/core"
)

// need is a field that a rule reads from a call, by its name in [Options].Fields.
type need struct {
	field   string
	missing int // calls of the rule without it
}

// has reports whether a call has a field.
func (v *view) has(field string) bool {
	c := v.call
	kind, name, named := strings.Cut(field, ":")
	switch {
	case kind == "cookie":
		return v.Cookie(name) != ""
	case named:
		return c.Named(kind, name) != nil
	case kind == "user":
		return c.User != ""
	case kind == "address":
		return c.Address.IsValid()
	case kind == "host":
		return c.Host != ""
	case kind == "route":
		return c.Route != ""
	case kind == "size":
		return c.Size >= 0
	case kind == "status":
		return c.Status != 0
	default:
		return c.Took != 0
	}
}

// reads notes that the rule reads a field.
func (r *ruleTally) reads(field string) {
	for _, n := range r.needs {
		if n.field == field {
			return
		}
	}
	r.needs = append(r.needs, need{field: field})
}

// countMissing counts the fields that a call of the rule lacks.
func (r *ruleTally) countMissing(v *view) {
	if !r.explored {
		r.explored = true
		r.explore(v)
	}
	for i := range r.needs {
		if !v.has(r.needs[i].field) {
			r.needs[i].missing++
		}
	}
}

// explore finds out which fields the rule reads, by its functions' look at one call.
func (r *ruleTally) explore(v *view) {
	if r.rule == nil {
		return
	}
	q := &watched{view: v, of: r}
	if r.rule.Key != nil {
		_, _ = r.rule.Key(q)
	} else if !r.rule.NeedLogin {
		r.reads("address")
	}
	for _, price := range []func(core.Request) int{r.rule.Cost, r.rule.Estimate} {
		if price != nil {
			price(q)
		}
	}
	if r.rule.Plan != nil {
		_, _ = r.rule.Plan(q)
	}
	if r.rule.LimitFor != nil {
		_, _ = r.rule.LimitFor(q)
	}
	if r.rule.Skip != nil {
		r.rule.Skip(q)
	}
	if r.rule.Count != nil {
		r.reads("status")
	}
	if r.holdsSlots() {
		r.reads("seconds")
	}
}

// holdsSlots reports whether the rule limits calls in flight, and needs to know how long they took.
func (r *ruleTally) holdsSlots() bool {
	for _, l := range append([]core.Limit{r.rule.Limit}, r.rule.Also...) {
		if properties(l).Slots {
			return true
		}
	}
	return false
}

// forCalls returns a rule as it decides the calls in a log. A rule for users only ignores the calls
// without a user, because they would be refused whatever its limit is.
func (t *tally) forCalls(r core.Rule, v *view) core.Rule {
	r.Warn = nil
	r = keepSlots(r)
	if !r.NeedLogin {
		return r
	}
	of, skip := t.of(r.Name), r.Skip
	of.reads("user")
	r.Skip = func(q core.Request) bool {
		if skip != nil && skip(q) {
			return true
		}
		if v.call.User == "" {
			of.ignored++
		}
		return v.call.User == ""
	}
	return r
}

// watched is a Request that notes what a function reads.
type watched struct {
	*view
	of *ruleTally
}

func (w *watched) Rule() string { return w.of.name }

func (w *watched) User() (string, error) {
	w.of.reads("user")
	return w.call.User, nil
}

func (w *watched) ClientIP() netip.Addr { return w.RemoteAddr() }

func (w *watched) RemoteAddr() netip.Addr {
	w.of.reads("address")
	return w.view.RemoteAddr()
}

func (w *watched) Route() string {
	w.of.reads("route")
	return w.view.Route()
}

func (w *watched) Param(name string) string {
	w.of.reads("route")
	return w.view.Param(name)
}

func (w *watched) Host() string {
	w.of.reads("host")
	return w.view.Host()
}

func (w *watched) Header(name string) []string {
	name = http.CanonicalHeaderKey(name)
	w.of.reads("header:" + name)
	return w.view.Header(name)
}

func (w *watched) Cookie(name string) string {
	w.of.reads("cookie:" + name)
	return w.view.Cookie(name)
}

func (w *watched) Value(key any) any {
	if name, ok := key.(string); ok {
		w.of.reads("value:" + name)
	}
	return w.view.Value(key)
}

func (w *watched) Size() int64 {
	w.of.reads("size")
	return w.view.Size()
}
