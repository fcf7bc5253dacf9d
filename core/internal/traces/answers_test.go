package traces

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/terms"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// records returns what a log lists, or nil if that is not asked.
func (p *player) records(s *step) (all []string) {
	if s.do != "records" {
		return nil
	}
	log, err := p.limiter.Log(rule, p.limit)
	if err != nil {
		return []string{wordOf(err)}
	}
	records, err := log.Records(context.Background(), subject)
	if err != nil {
		return []string{wordOf(err)}
	}
	all = []string{fmt.Sprintf("lists %d", len(records))}
	for _, r := range records {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d at %s %s", r.Cost, terms.Span(r.Time.Sub(p.start)), r.Note)))
	}
	return all
}

// cells returns what a decision and an error say.
func (p *player) cells(d core.Decision, word string, err error) (cells []string) {
	if err != nil {
		word = wordOf(err)
	}
	for _, one := range d.All {
		if one.Limit == p.limit {
			d.Remaining, d.ResetAfter, d.RetryAfter = one.Remaining, one.ResetAfter, one.RetryAfter
		}
	}
	switch {
	case d.Reason == "":
		return []string{word}
	case word != "":
	case d.Allowed:
		word = "passes"
	default:
		word = "refused"
	}
	cells = []string{word, fmt.Sprintf("left %d", d.Remaining), "reset " + terms.Span(d.ResetAfter)}
	if !d.Allowed {
		cells = append(cells, "retry "+terms.Span(d.RetryAfter))
	}
	if d.Wait > 0 {
		cells = append(cells, "wait "+terms.Span(d.Wait))
	}
	return cells
}

// wordOf returns an error in a word or two.
func wordOf(err error) string {
	var wrong *core.RuleError
	switch _, detail, _ := strings.Cut(err.Error(), ", "); {
	case errors.Is(err, core.ErrCostExceedsLimit):
		return "never fits"
	case errors.Is(err, core.ErrDebtExceeded):
		return "charged all but " + strings.Fields(strings.TrimPrefix(err.Error(), core.ErrDebtExceeded.Error()+": "))[0]
	case errors.Is(err, core.ErrBillUnknown):
		return "no bill"
	case errors.Is(err, core.ErrBillSettled):
		return "settled " + detail
	case errors.Is(err, errName), errors.As(err, &wrong):
		return "wrong"
	default:
		return "FAILED " + err.Error()
	}
}

// keys returns when the counter's key expires. In this process there are none.
func (p *player) keys(t testing.TB) (cells []string) {
	if p.server == nil {
		return nil
	}
	ctx, head := context.Background(), p.prefix+":{"+subject+"}:"+rule+":"
	keys, err := p.server.Keys(ctx, head+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	for _, key := range keys {
		of := strings.TrimPrefix(key, head)
		switch {
		case strings.HasPrefix(of, "bl1:"), strings.HasSuffix(of, fmt.Sprint(":", besides.Window.Microseconds())):
			continue
		}
		at, err := scriptclock.ExpireTime(ctx, p.server, key).Int64()
		if err != nil || at < 0 {
			t.Errorf("%s expires at %d, %v", key, at, err)
		}
		if at*1000 > p.now.Load() {
			cells = append(cells, fmt.Sprintf("key until %s", terms.Span(time.UnixMilli(at).Sub(p.start))))
		}
	}
	if cells == nil {
		return []string{"no key"}
	}
	return cells
}
