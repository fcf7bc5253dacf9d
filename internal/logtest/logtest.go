// Package logtest collects what the code under test logs.
package logtest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// Log collects log lines. It may be read while it is written to, because limiters log in the
// background. The zero value is an empty Log.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to the log.
func (l *Log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// String returns everything that was logged.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Logger returns a logger that writes to the log as slog.TextHandler does.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Count returns the number of lines that contain all of the words.
func (l *Log) Count(words ...string) (lines int) {
	for line := range strings.Lines(l.String()) {
		found := true
		for _, word := range words {
			found = found && strings.Contains(line, word)
		}
		if found {
			lines++
		}
	}
	return lines
}

// Reset removes everything that was logged so far.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}
