package core

import "github.com/accesslimit/accesslimit/core/internal/limiter"

// Limiter decides whether calls may go on. Make one for a service with [New] and share it. It is
// safe for concurrent use.
//
// The adapters attach rules to routes; [Limiter.Guard] and [Limiter.Check] prepare rules. Without a
// framework, make a [Counter], [Pacer], [Log] or [Slots] once and call it often.
type Limiter limiter.Limiter[Rule]
