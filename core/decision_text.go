package core

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
)

// String returns the decision in words, for logs. It leaves out the subject, which may be a
// person's name or address:
//
//	refused by "reply": limit_exceeded, 0 left of 5 per 1m, retry after 12.5s, from redis
func (d Decision) String() string { return string(d.appendText(nil, false)) }

// Format implements fmt.Formatter. The verb %+v prints the subject too, and the decision on each of
// several limits; %v and %s print what String returns.
func (d Decision) Format(f fmt.State, verb rune) {
	switch {
	case verb == 'v' && f.Flag('+'):
		_, _ = f.Write(d.appendText(nil, true))
	case verb == 'v' && f.Flag('#'):
		type bare Decision // without this method
		_, _ = fmt.Fprintf(f, "%#v", bare(d))
	case verb == 'v' || verb == 's':
		_, _ = io.WriteString(f, d.String())
	default:
		_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), d.String())
	}
}

// LogValue implements slog.LogValuer. It leaves out the subject, as String does.
func (d Decision) LogValue() slog.Value {
	attrs := make([]slog.Attr, 0, 9)
	attrs = append(attrs, slog.Bool("allowed", d.Allowed), slog.String("reason", string(d.Reason)), slog.String("rule", d.Rule),
		slog.String("limit", d.Limit.String()), slog.String("source", string(d.Source)))
	if d.Source != FromNobody {
		attrs = append(attrs, slog.Int("remaining", d.Remaining), slog.Duration("reset_after", d.ResetAfter))
	}
	if d.RetryAfter > 0 {
		attrs = append(attrs, slog.Duration("retry_after", d.RetryAfter))
	}
	if d.Wait > 0 {
		attrs = append(attrs, slog.Duration("wait", d.Wait))
	}
	return slog.GroupValue(attrs...)
}

// appendText appends the decision in words; if all is set, with the subject and the decision on
// each limit.
func (d *Decision) appendText(text []byte, all bool) []byte {
	if d.Reason == "" {
		return append(text, "no decision"...)
	}
	text = strconv.AppendQuote(append(text, d.verb()...), d.Rule)
	if all && d.Key != "" {
		text = strconv.AppendQuote(append(text, " for "...), d.Key)
	}
	text = append(text, ": "...)
	if d.Reason != Allowed {
		text = append(append(text, d.Reason...), ", "...)
	}
	text = d.appendNumbers(text)
	if all {
		for i := 1; i < len(d.All); i++ { // the first is the decision itself
			text = d.All[i].appendText(append(text, "; "...), true)
		}
	}
	return text
}

func (d *Decision) verb() string {
	if d.Allowed {
		return "allowed by "
	}
	return "refused by "
}

func (d *Decision) appendNumbers(text []byte) []byte {
	if d.Source == FromNobody {
		return append(text, d.Limit.String()...)
	}
	text = fmt.Appendf(text, "%d left of %v", d.Remaining, d.Limit)
	if d.RetryAfter > 0 {
		text = fmt.Appendf(text, ", retry after %v", d.RetryAfter)
	} else {
		text = fmt.Appendf(text, ", reset after %v", d.ResetAfter)
	}
	if d.Wait > 0 {
		text = fmt.Appendf(text, ", wait %v", d.Wait)
	}
	return append(append(text, ", from "...), d.Source...)
}
