package promise

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// model is one counter as the design describes it, in plain arithmetic, without a thought for speed
// or memory: what an engine must answer, field by field. One for another algorithm needs nothing
// but these methods.
//
// It forgets nothing by itself: the engines do, once a counter equals a fresh one, which nobody
// must be able to notice.
type model interface {
	// ask is what the counter answers to a cost at a time, in microseconds since the epoch. A call
	// that charges takes the cost if it fits; nothing else changes anything. A cost of 0 always
	// fits.
	ask(now int64, limit core.Limit, cost int, charge bool) prediction
	// refund gives back so many permits of a charge, as far as they still count. Charges are
	// numbered from 0, in order.
	refund(now int64, limit core.Limit, charge, permits int)
}

// prediction is the part of a decision that depends on the counter. Times are in microseconds.
type prediction struct {
	left              int   // after the charge; never negative
	resetAfter, retry int64 // retry is 0 when the cost fits
}

// decision is a prediction as the limiter words it.
func (p prediction) decision(name, subject string, limit core.Limit, source core.Source) core.Decision {
	d := core.Decision{
		Allowed: p.retry == 0, Reason: core.Allowed, Rule: name, Key: subject, Limit: limit, Source: source,
		Remaining:  max(0, p.left),
		ResetAfter: time.Duration(p.resetAfter) * time.Microsecond,
		RetryAfter: time.Duration(p.retry) * time.Microsecond,
	}
	if !d.Allowed {
		d.Reason = core.LimitExceeded
	}
	return d
}

// sameDecision says in an error in what two decisions differ, field by field.
func sameDecision(got, want core.Decision) error {
	if g, w := fields(got), fields(want); g != w {
		return fmt.Errorf("the decision is\n\t%s, want\n\t%s", g, w)
	}
	return nil
}

// fields are all that users can see of a decision, in words.
func fields(d core.Decision) string {
	var words []string
	v := reflect.ValueOf(d)
	for i := range v.NumField() {
		switch field := v.Type().Field(i); {
		case field.Name == "All":
			for _, each := range d.All {
				words = append(words, fields(each))
			}
		case field.IsExported():
			words = append(words, fmt.Sprintf("%s:%v", field.Name, v.Field(i)))
		}
	}
	return "{" + strings.Join(words, " ") + "}"
}
