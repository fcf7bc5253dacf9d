package traces

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/terms"
)

//go:embed *.txt
var files embed.FS

// Trace shows one fact about an algorithm.
type Trace struct {
	Says  string // the fact
	lines []line
}

// line is a step, a change of the terms, or neither.
type line struct {
	text   string // as it stands in the file
	change string // what changes: the first word; "": nothing
	value  string // to what
	step   *step
}

// step is an operation at a time.
type step struct {
	at     time.Duration // since the beginning
	op     string        // as it stands in the file
	do     string        // the form of the operation
	n      int
	of, as string // the names of an earlier charge, and of this one
	note   string
	span   time.Duration
	answer []string
	late   time.Duration // how much later the key may expire than the answer says
}

// forms are the operations. N is a number, X a name, D a duration; what is in brackets may be left
// out.
var forms = map[string]*regexp.Regexp{}

func init() {
	for _, form := range []string{
		"look", "take N[ with X][ as X]", "take up to N[ as X]", "charge N[ as X]", "give back N of X", "turn N[ within D][ as X]",
		"open N as X", "add N to X", "settle X at N", "cancel X", "hold as X", "renew X", "release X", "records", "reset",
		"ask", "refuse[ for D]", "announce D", "answer",
	} {
		name, _, _ := strings.Cut(form, "[")
		pattern := strings.NewReplacer(" as X", " as (?<as>[a-z]+)", " with X", " with (?<note>[a-z]+)", "[", "(?:", "]", ")?").Replace(form)
		pattern = strings.NewReplacer("N", "(?<n>[0-9]{1,18})", "X", "(?<of>[a-z]+)", "D", "(?<span>[0-9a-zµ.]+)").Replace(pattern)
		forms[name] = regexp.MustCompile("^" + pattern + "$")
	}
}

// earliest and latest bound the times of a trace, so that no key expires by a server's own clock,
// and all numbers are exact.
var (
	beginning = time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)
	earliest  = time.Date(2065, time.January, 1, 0, 0, 0, 0, time.UTC)
	latest    = time.Date(2180, time.January, 1, 0, 0, 0, 0, time.UTC)
)

// large is a number that an int of 32 bits does not hold.
var large = regexp.MustCompile(`[0-9]{10}`)

// Parse reads the traces of a file. It returns the text before them, too. If an int has 32 bits, it
// leaves out the traces with larger numbers, which only larger machines can ask for.
func Parse(text string) (head string, all []*Trace, err error) {
	head, traces, _ := strings.Cut(text, "== ")
	for _, text := range strings.Split(traces, "\n== ") {
		if strconv.IntSize == 32 && large.MatchString(text) {
			continue
		}
		t := new(Trace)
		for i, text := range strings.Split(text, "\n") {
			if i == 0 {
				t.Says = text
				continue
			}
			l, err := parseLine(text)
			if err != nil {
				return "", nil, fmt.Errorf("%s: %w", t.Says, err)
			}
			t.lines = append(t.lines, l)
		}
		all = append(all, t)
	}
	return head, all, nil
}

var cells = regexp.MustCompile(` {2,}`)

func parseLine(text string) (l line, err error) {
	l.text = text
	switch first, rest, _ := strings.Cut(text, " "); first {
	case "limit", "debt", "start":
		l.change, l.value = first, rest
		return l, check(first, rest)
	case "", "#":
		if strings.TrimSpace(text) == "" || first == "#" {
			return l, nil
		}
	}
	cells := cells.Split(strings.TrimSpace(text), -1)
	if len(cells) < 2 {
		return l, fmt.Errorf("%q is not a step", text)
	}
	l.step, err = parseStep(cells[0], cells[1])
	if err == nil {
		l.step.answer = cells[2:]
	}
	return l, err
}

func check(change, value string) (err error) {
	switch change {
	case "limit":
		_, err = core.ParseLimit(value)
	case "debt":
		_, err = strconv.ParseFloat(value, 64)
	case "start":
		var at time.Time
		if at, err = time.Parse(time.RFC3339, value); err == nil && (at.Before(earliest) || at.After(latest)) {
			err = fmt.Errorf("%s is out of range", value)
		}
	}
	return err
}

func parseStep(at, op string) (s *step, err error) {
	s = &step{op: op}
	if s.at, err = time.ParseDuration(at); err != nil {
		return nil, err
	}
	for name, form := range forms {
		found := form.FindStringSubmatch(op)
		if found == nil {
			continue
		}
		s.do = name
		for i, group := range form.SubexpNames() {
			switch value := found[i]; {
			case value == "":
			case group == "n":
				s.n, err = strconv.Atoi(value)
			case group == "of":
				s.of = value
			case group == "as":
				s.as = value
			case group == "note":
				s.note = value
			case group == "span":
				s.span, err = time.ParseDuration(value)
			}
			if err != nil {
				return nil, err
			}
		}
		return s, nil
	}
	return nil, fmt.Errorf("%q is no operation", op)
}

// String returns the trace as it stands in a file, with its steps aligned.
func (t *Trace) String() string {
	var rows [][]string
	var widths [16]int
	for _, l := range t.lines {
		if l.step == nil {
			rows = append(rows, nil)
			continue
		}
		rows = append(rows, l.step.row())
		for i, cell := range rows[len(rows)-1] {
			if l.step.do != "records" || i < 2 {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "== %s\n", t.Says)
	for i, row := range rows {
		text := " "
		for at, cell := range row {
			if cell != "" || widths[at] > 0 {
				text += fmt.Sprintf(" %-*s ", widths[at], cell)
			}
		}
		if row == nil {
			text = t.lines[i].text
		}
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	return b.String()
}

// columns are the beginnings of the cells that stand below each other, after the time, the operation,
// and what became of it.
var columns = []string{"left ", "reset ", "retry ", "wait ", "lost "}

// row returns the cells of the step by their columns. The last ones are about the key.
func (s *step) row() []string {
	if s.do == "records" {
		return append([]string{terms.Span(s.at), s.op}, s.answer...)
	}
	row := make([]string, 3+len(columns))
	row[0], row[1] = terms.Span(s.at), s.op
	for i, cell := range s.answer {
		at := slices.IndexFunc(columns, func(begins string) bool { return strings.HasPrefix(cell, begins) })
		switch {
		case at >= 0:
			row[3+at] = cell
		case i == 0:
			row[2] = cell
		default:
			row = append(row, cell)
		}
	}
	return row
}
