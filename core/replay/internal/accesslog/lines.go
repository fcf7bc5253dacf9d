package accesslog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// maxLine is the longest line that is read, in bytes.
const maxLine = 256 << 10

// lines reads the lines of a log, which may be compressed with gzip.
type lines struct {
	r      *bufio.Reader
	buffer []byte
	number int
}

// endless is the length of a line after which a file cannot be a log, in bytes.
const endless = 64 << 20

var (
	errLong    = fmt.Errorf("is longer than %d bytes", maxLine)
	errEndless = fmt.Errorf("has no end of a line in %d bytes: it is not a log", endless)
)

// packed are the first bytes of compressed files, with what unpacks them.
var packed = map[string]string{"\x28\xb5\x2f\xfd": "zstd -dc", "BZh": "bzip2 -dc", "\xfd7zXZ": "xz -dc", "PK\x03\x04": "unzip -p"}

func newLines(r io.Reader) (*lines, error) {
	l := &lines{r: bufio.NewReaderSize(r, 64<<10)}
	head, err := l.r.Peek(6)
	if err != nil && err != io.EOF {
		return nil, err
	}
	for magic, by := range packed {
		if bytes.HasPrefix(head, []byte(magic)) {
			return nil, fmt.Errorf("is compressed: unpack it with %s", by)
		}
	}
	if bytes.HasPrefix(head, []byte("\x1f\x8b")) {
		unpacked, err := gzip.NewReader(l.r)
		if err != nil {
			return nil, err
		}
		l.r = bufio.NewReaderSize(unpacked, 64<<10)
		head, _ = l.r.Peek(3)
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) { // a byte order mark
		_, _ = l.r.Discard(3)
	}
	return l, nil
}

// next returns the next line that is not empty, which is valid until the next call. A line with errLong
// is cut off. Any other error is the end.
func (l *lines) next() (line []byte, err error) {
	for {
		line, err = l.read()
		if err != nil && err != errLong {
			return nil, err
		}
		l.number++
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			return line, err
		}
	}
}

// read reads a line with its end.
func (l *lines) read() (line []byte, err error) {
	line, err = l.r.ReadSlice('\n')
	switch {
	case err == nil:
		return line, nil
	case err == io.EOF && len(line) > 0:
		return line, nil
	case err != bufio.ErrBufferFull:
		return nil, cutOff(err)
	}
	l.buffer = append(l.buffer[:0], line...)
	for length := len(line); err == bufio.ErrBufferFull; {
		if length > endless {
			return nil, errEndless
		}
		line, err = l.r.ReadSlice('\n')
		length += len(line)
		l.buffer = append(l.buffer, line[:min(len(line), maxLine-len(l.buffer))]...)
	}
	switch {
	case err != nil && err != io.EOF:
		return nil, cutOff(err)
	case len(l.buffer) == maxLine:
		return l.buffer, errLong
	}
	return l.buffer, nil
}

// ErrCutOff is the error of a compressed log whose end is missing.
var ErrCutOff = errors.New("is cut off: the end of the gzip file is missing")

func cutOff(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCutOff
	}
	return err
}
