package promise

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// model is one counter as the design describes it, in plain arithmetic, regardless of speed and
// memory. It gives each field of the answer that an engine must give. It adds in 64 bits, because
// permits may be as many as an int holds. A new algorithm needs only these methods.
//
// A model forgets nothing. An engine forgets a counter that equals a fresh one, which must not be
// noticeable.
type model interface {
	// ask returns the answer to a cost at a time, in microseconds since the epoch. If charge is
	// set, the cost is taken if it fits. Nothing else changes the counter. A cost of 0 always fits.
	ask(now int64, limit core.Limit, cost int, charge bool) prediction
	// refund gives back some permits of a charge, as far as they still count. Charges are numbered
	// from 0, in order.
	refund(now int64, limit core.Limit, charge, permits int)
}

// prediction is the part of a decision that depends on the counter. Times are in microseconds.
type prediction struct {
	left              int64 // after the charge
	resetAfter, retry int64 // retry is 0 when the cost fits
}

// decision returns the prediction as the limiter's Decision.
func (p prediction) decision(name, subject string, limit core.Limit, source core.Source) core.Decision {
	d := core.Decision{
		Allowed: p.retry == 0, Reason: core.Allowed, Rule: name, Key: subject, Limit: limit, Source: source,
		Remaining:  int(max(0, p.left)),
		ResetAfter: time.Duration(p.resetAfter) * time.Microsecond,
		RetryAfter: time.Duration(p.retry) * time.Microsecond,
	}
	if !d.Allowed {
		d.Reason = core.LimitExceeded
	}
	return d
}

// sameDecision returns an error if two decisions differ in any field.
func sameDecision(got, want core.Decision) error {
	if g, w := fields(got), fields(want); g != w {
		return fmt.Errorf("the decision is\n\t%s, want\n\t%s", g, w)
	}
	return nil
}

// fields formats all fields of a decision that users can see.
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
