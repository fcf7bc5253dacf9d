package terms

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// ErrForm is the error for a text that is not in any form of a limit.
var ErrForm = errors.New("must be like " + allForms)

// Parse reads the text form of a limit. It does not check whether such a limit is valid.
func Parse(text string) (Terms, error) {
	words := strings.Fields(text)
	if len(words) == 1 && words[0] == "unlimited" {
		return Unlimited, nil
	}
	for _, kind := range kindsThat(hasSlots) {
		own := strings.Fields(kind.OfLimit().Text)
		if len(words) > len(own) && slices.Equal(words[1:len(own)+1], own) {
			return parseSlots(kind, words[0], words[len(own)+1:])
		}
	}
	if len(words) == 0 {
		return Terms{}, ErrForm
	}
	return parseRate(words[0], words[1:])
}

func hasSlots(p *algorithm.Properties) bool { return p.Slots }

func parseSlots(kind algorithm.Kind, count string, rest []string) (t Terms, err error) {
	t = Terms{Window: DefaultLostAfter, Kind: kind}
	if t.Max, err = parseCount(count); err != nil || len(rest) == 0 {
		return t, err
	}
	if len(rest) != 3 || rest[0] != "lost" || rest[1] != "after" {
		return t, ErrForm
	}
	t.Window, err = parseSpan(rest[2])
	return t, err
}

// parseRate reads a rate, which is a number and a span, and the words after it.
func parseRate(rate string, rest []string) (t Terms, err error) {
	count, span, ok := strings.Cut(rate, "/")
	if !ok {
		return t, ErrForm
	}
	if t.Max, err = parseCount(count); err != nil {
		return t, err
	}
	if unit, zone, ok := strings.Cut(span, "@"); ok {
		return t.inCalendar(unit, zone, rest)
	}
	if t.Window, err = parseUnit(count, span); err != nil {
		return t, err
	}
	return t.counted(rest)
}

// inCalendar sets the days or months of a zone.
func (t Terms) inCalendar(unit, zone string, rest []string) (Terms, error) {
	if len(rest) > 0 {
		return t, errors.New("a calendar day or month has no other algorithm: leave out " + strconv.Quote(rest[0]))
	}
	if t.Unit = unitOf(unit); t.Unit == 0 {
		return t, errors.New("only days and months have a zone: day@UTC, month@Europe/Berlin")
	}
	t.Zone = zone
	t.Kind = ofCalendars
	return t, nil
}

func unitOf(name string) Unit {
	for u := Days; u <= Months; u++ {
		if u.String() == name {
			return u
		}
	}
	return 0
}

// counted sets the algorithm that the words after a rate name.
func (t Terms) counted(words []string) (_ Terms, err error) {
	if len(words) == 0 {
		return t, nil
	}
	for _, kind := range algorithm.Kinds() {
		switch of := kind.OfLimit(); {
		case of.Text != words[0]:
		case of.Burst && len(words) == 2:
			t.Kind = kind
			t.Burst, err = parseCount(words[1])
			return t, err
		case !of.Burst && len(words) == 1:
			t.Kind = kind
			return t, nil
		}
	}
	return t, fmt.Errorf("does not say how to count with %q: %s", strings.Join(words, " "), waysToCount())
}

// waysToCount returns the words that can follow a rate: log, fixed, aligned or burst N.
func waysToCount() string {
	words := suffixes(" N")
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// suffixes returns the words that can follow a rate. number stands for the number after the words
// of a burst.
func suffixes(number string) (words []string) {
	for _, kind := range algorithm.Kinds() {
		switch of := kind.OfLimit(); {
		case of.Text == "" || of.Slots:
		case of.Burst:
			words = append(words, of.Text+number)
		default:
			words = append(words, of.Text)
		}
	}
	return words
}

// parseCount reads only digits. A sign or an underscore would be lost when the limit is written
// back.
func parseCount(text string) (n int, err error) {
	wide, err := strconv.ParseInt(text, 10, 64)
	switch n = int(wide); {
	case err != nil || wide < 1 || text[0] == '+':
		return 0, fmt.Errorf("counts %q, which is not a number from 1 to 10^12", text)
	case int64(n) != wide:
		return 0, fmt.Errorf("counts %q, but the largest number on 32 bits is %d", text, math.MaxInt)
	}
	return n, nil
}

// parseUnit reads the span of a rate.
func parseUnit(count, span string) (time.Duration, error) {
	for _, one := range spans {
		if span == one.letter {
			return one.is, nil
		}
	}
	switch span {
	case "d", "day":
		return 0, fmt.Errorf("needs a zone, as in %s/day@UTC; for 24 hours from any moment write %s/24h", count, count)
	case "month":
		return 0, fmt.Errorf("needs a zone, as in %s/month@UTC; for 30 days from any moment write %s/720h", count, count)
	}
	return parseSpan(span)
}

func parseSpan(text string) (time.Duration, error) {
	span, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("has the span %q, which is not s, m, h or a duration such as 15m", text)
	}
	return span, nil
}
