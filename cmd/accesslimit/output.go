package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/urfave/cli/v3"
)

// output is standard output. It remembers the first error, so that commands need not check each
// line that they print.
type output struct {
	to  io.Writer
	err atomic.Pointer[error] // the first one
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (n int, err error) {
	if n, err = o.to.Write(p); err != nil {
		o.err.CompareAndSwap(nil, &err)
	}
	return n, err
}

// failed returns the first error, or nil.
func (o *output) failed() error {
	if err := o.err.Load(); err != nil {
		return *err
	}
	return nil
}

// asJSON is the flag that makes a command print JSON.
func asJSON() cli.Flag { return &cli.BoolFlag{Name: "json", Usage: "print JSON"} }

// show prints a result as JSON if that is wanted, and otherwise by text.
func show(c *cli.Command, result any, text func() error) error {
	if !c.Bool("json") {
		return text()
	}
	encoder := json.NewEncoder(c.Root().Writer)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(result)
}

// terminal is an output that people read. It escapes control characters, which names of files and
// arguments can contain, so that a terminal does not obey them.
type terminal struct{ to io.Writer }

// Write implements io.Writer, for whole lines.
func (t terminal) Write(p []byte) (n int, err error) {
	if _, err := io.WriteString(t.to, escaped(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// escaped returns a text in which all characters that do not print are escaped, except line ends.
func escaped(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		one := text[:size]
		if r != '\n' && (!strconv.IsPrint(r) || r == utf8.RuneError && size == 1) {
			quoted := strconv.Quote(one)
			one = quoted[1 : len(quoted)-1]
		}
		b.WriteString(one)
		text = text[size:]
	}
	return b.String()
}

// counted returns a number of things: "1 rule", "2 rules".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// printable quotes a text that could forge lines, or columns.
func printable(text string) string {
	if quoted := strconv.Quote(text); strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`) != text {
		return quoted
	}
	return text
}
