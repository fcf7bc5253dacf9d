package limiter

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/audit"
)

// Reset forgets keys of a subject together, and records the act. failed is [Front].Failed.
func (p *Parts) Reset(ctx context.Context, act audit.Act, failed func(name string, err error) error, keys ...[]byte) (changed bool, err error) {
	act.Began = time.Now()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if len(keys) > 0 {
		changed, err = p.Store.Reset(ctx, keys...)
		err = failed(act.Rule, err)
	}
	p.Audits.Acted(ctx, act, changed, err)
	return changed, err
}
