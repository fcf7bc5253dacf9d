package core

import (
	"context"
	"net/netip"
	"strings"
)

// Event is a decision and the call that it is about. Options.OnDecision receives it. Its strings
// are copies and may be kept. Fields may be added later.
type Event struct {
	Decision Decision
	// Method, Route and Path are those of the call, as in [Request], or "" for a direct call.
	Method, Route, Path string
	// ClientIP is the caller's address as Options.ClientIP finds it, or the zero Addr for a direct
	// call and for a caller without an address.
	ClientIP netip.Addr
}

// report passes a decision on the call to OnDecision.
func (c *call) report(d *Decision) {
	if c.parts.options.OnDecision == nil {
		return
	}
	c.parts.options.OnDecision(c.Context(), Event{
		Decision: *d, Method: strings.Clone(c.Method()), Route: strings.Clone(c.Route()), Path: strings.Clone(c.Path()),
		ClientIP: c.ClientIP(),
	})
}

// reportDirect passes the decision on a direct call to OnDecision. If that panics, the caller gets
// no decision. Then undo, unless it is nil, gives back what only the caller could have given back.
func (o *Options) reportDirect(ctx context.Context, d *Decision, undo func()) {
	if o.OnDecision == nil {
		return
	}
	returned := false
	defer func() {
		if !returned && undo != nil {
			undo()
		}
	}()
	o.OnDecision(ctx, Event{Decision: d.clone()})
	returned = true
}
