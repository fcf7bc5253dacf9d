package core

import (
	"github.com/accesslimit/accesslimit/core/internal/codeplace"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// withOverrides returns the handle with overrides.
func (h *handle) withOverrides() *handle {
	if h == nil {
		return nil
	}
	changed := *h
	changed.single = nil // the path for one counter does not ask for overrides
	own := h.limits[0].limit
	switch {
	case own == Unlimited:
		changed.wrong = &RuleError{Rule: h.named.name, Field: "Limit", Value: own, Why: "has no span, and overrides are made for a span"}
	case !h.front.registry.names.ClaimHandle(h.named.name, own, codeplace.OfCaller):
		changed.wrong = &RuleError{Rule: h.named.name, Field: "Limit", Code: codeNotOverridable, Value: own, Why: notOverridable}
	default:
		changed.counted.OverrideKey = rediskey.OverrideTail(h.named.name)
		h.front.BanWatch.Start()
	}
	return &changed
}
