package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/accesslimit/accesslimit/core/replay"
)

// openedLogs are the logs that a command reads.
type openedLogs struct {
	all   []replay.Log
	files []*os.File
	size  int64 // of the files together
	read  atomic.Int64
	shown time.Time // when progress was shown last
}

// openLogs opens the files that the arguments name. A - stands for standard input.
func openLogs(c *cli.Command) (*openedLogs, error) {
	l := new(openedLogs)
	if !c.Args().Present() {
		return nil, usage(c, "name the access logs, or - for standard input")
	}
	for _, name := range c.Args().Slice() {
		if name == "-" {
			l.all = append(l.all, replay.Log{Name: "standard input", Reader: c.Root().Reader})
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			l.close()
			return nil, err
		}
		l.files = append(l.files, file)
		if info, err := file.Stat(); err == nil {
			l.size += info.Size()
		}
		l.all = append(l.all, replay.Log{Name: name, Reader: countingReader{file, &l.read}})
	}
	return l, nil
}

func (l *openedLogs) close() {
	for _, file := range l.files {
		file.Close()
	}
}

// countingReader counts the bytes that are read.
type countingReader struct {
	io.Reader
	read *atomic.Int64
}

func (r countingReader) Read(p []byte) (n int, err error) {
	n, err = r.Reader.Read(p)
	r.read.Add(int64(n))
	return n, err
}

// progress returns what shows the progress on a terminal, or nil if there is none.
func (l *openedLogs) progress(to *os.File) func(lines int) {
	info, err := to.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return func(lines int) {
		if time.Since(l.shown) < 200*time.Millisecond {
			return
		}
		l.shown = time.Now()
		fmt.Fprint(to, "\r\033[K", l.progressLine(lines))
	}
}

// progressLine says how much was read.
func (l *openedLogs) progressLine(lines int) string {
	if l.size == 0 {
		return fmt.Sprintf("%d lines", lines)
	}
	return fmt.Sprintf("%d lines, %d %%", lines, min(100, l.read.Load()*100/l.size))
}

// endProgress removes the progress from the terminal.
func (l *openedLogs) endProgress(to *os.File) {
	if !l.shown.IsZero() {
		fmt.Fprint(to, "\r\033[K")
	}
}
