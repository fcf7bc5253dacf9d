package core

import (
	"errors"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/limittext"
)

// String returns the limit in its text form, which [ParseLimit] reads: unlimited, or a number in a
// span, such as 100/s, and the words of its [Algorithm]. The span is s, m or h, or a duration as
// time.ParseDuration reads it.
func (l Limit) String() string { return l.normal().terms().String() }

// MarshalText implements encoding.TextMarshaler. It returns what String does.
func (l Limit) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It does what [ParseLimit] does, and leaves l
// unchanged if that returns an error.
func (l *Limit) UnmarshalText(text []byte) error {
	parsed, err := ParseLimit(string(text))
	if err == nil {
		*l = parsed
	}
	return err
}

// ParseLimit reads a limit in the text form that [Limit.String] returns. For every valid limit,
// ParseLimit(l.String()) returns l with its unset fields filled in. The error is a *[RuleError].
func ParseLimit(text string) (Limit, error) {
	terms, err := limittext.Parse(text)
	l := limitOf(terms)
	switch wrong := l.wrong(); {
	case errors.Is(err, limittext.ErrForm):
		return Limit{}, wrongText(text, "limit_form", err.Error())
	case err != nil:
		return Limit{}, wrongText(text, "limit_text", err.Error())
	case wrong != nil && l != Unlimited:
		return Limit{}, wrongText(text, wrong.Code, partNames[wrong.Field]+wrong.Why)
	}
	return l.clone(), nil
}

func wrongText(text, code, why string) *RuleError {
	return &RuleError{Field: "Limit", Code: code, Value: strings.Clone(text), Why: why}
}

// partNames are how an error about a text begins, by the field of the Limit that it is about.
var partNames = map[string]string{"Max": "its number ", "Window": "its span ", "Burst": "its burst "}

// terms returns the fields of the limit.
func (l Limit) terms() limittext.Terms {
	return limittext.Terms{
		Max: l.Max, Window: l.Window, Unit: l.Calendar.unit, Zone: l.Calendar.zone, Kind: algorithm.Kind(l.Algorithm), Burst: l.Burst,
	}
}

// limitOf returns the limit with these fields.
func limitOf(t limittext.Terms) Limit {
	return Limit{Max: t.Max, Window: t.Window, Calendar: Calendar{t.Unit, t.Zone}, Algorithm: Algorithm(t.Kind), Burst: t.Burst}
}

// phrase returns the limit in the words of a message to callers, such as "5 per minute".
func (l Limit) phrase() string { return l.terms().Phrase() }

// spanName returns the word by which headers distinguish limits of one name: 10s, day, at-once.
func (l Limit) spanName() string { return l.terms().SpanName() }
