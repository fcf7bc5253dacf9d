package core

import (
	"net/netip"
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
