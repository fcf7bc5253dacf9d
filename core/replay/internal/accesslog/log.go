package accesslog

import (
	"fmt"
	"io"
	"strconv"
	"time"
)

// Counts are the lines of logs: those that are calls, those that are about something else, and those
// that could not be read.
type Counts struct {
	Lines, Calls, Others, Bad int
	Examples                  []BadLine // the first that could not be read
}

// BadLine is a line that could not be read.
type BadLine struct {
	Log  string `json:"log"`
	Line int    `json:"line"`
	Text string `json:"text"` // the beginning, quoted
	Why  string `json:"why"`
}

const (
	maxBadStart = 10_000 // lines that cannot be read before the first call: the format is wrong
	maxExamples = 3
	exampleText = 120 // bytes
)

// Log is the access log of one proxy.
type Log struct {
	name   string
	format Format
	lines  *lines
	ahead  []aheadLine // the first lines, from which the format was found out
	clock  clock
	counts *Counts

	badFirst int // lines that could not be read before the first call, or -1 after it
}

// aheadLine is a line that was read before its turn, or why it could not be read.
type aheadLine struct {
	text   string
	number int
	err    error
}

// Open returns a log whose lines are counted in counts. Times without a zone are in the given one.
func Open(name string, r io.Reader, format Format, zone *time.Location, counts *Counts) (*Log, error) {
	l, err := newLines(r)
	if err != nil {
		return nil, err
	}
	of := &Log{name: name, format: format, lines: l, clock: newClock(zone), counts: counts}
	if format.parser == nil {
		err = of.detect()
	}
	return of, err
}

// detectBy is the number of lines from which the format is found out.
const detectBy = 50

// detect finds out the format. An empty log has none, and needs none.
func (l *Log) detect() error {
	var texts []string
	for len(l.ahead) < detectBy {
		line, err := l.lines.next()
		if err != nil && err != errLong {
			if err == io.EOF || err == ErrCutOff {
				break
			}
			return err
		}
		texts = append(texts, string(line))
		l.ahead = append(l.ahead, aheadLine{string(line), l.lines.number, err})
	}
	if texts == nil {
		return nil
	}
	format, err := l.format.detect(texts, l.clock)
	l.format = format
	return err
}

// next reads the next call. The error at the end of the log is io.EOF.
func (l *Log) next(c *Call) error {
	for {
		line, number, err := l.line()
		if err != nil && err != errLong {
			return err
		}
		l.counts.Lines++
		if err == nil {
			err = l.format.parse(line, &l.clock, c)
		}
		switch err {
		case nil:
			l.counts.Calls++
			l.badFirst = -1
			return nil
		case errNoCall:
			l.counts.Others++
		default:
			if l.bad(line, number, err); l.badFirst == maxBadStart {
				return fmt.Errorf("none of its first %d lines can be read: %w", maxBadStart, err)
			}
		}
	}
}

// line returns the next line and its number.
func (l *Log) line() (line string, number int, err error) {
	if len(l.ahead) > 0 {
		first := l.ahead[0]
		l.ahead = l.ahead[1:]
		return first.text, first.number, first.err
	}
	read, err := l.lines.next()
	return string(read), l.lines.number, err
}

// bad counts a line that could not be read.
func (l *Log) bad(line string, number int, why error) {
	l.counts.Bad++
	if l.badFirst >= 0 {
		l.badFirst++
	}
	if len(l.counts.Examples) == maxExamples {
		return
	}
	text := strconv.Quote(line[:min(len(line), exampleText)])
	l.counts.Examples = append(l.counts.Examples, BadLine{l.name, number, text, why.Error()})
}

// Format returns the name of the log's format, or its log_format.
func (l *Log) Format() string { return l.format.name }

// Unit returns the smallest unit of the times read so far, in microseconds.
func (l *Log) Unit() int64 { return l.clock.unit }
