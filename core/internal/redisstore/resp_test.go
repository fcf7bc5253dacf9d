package redisstore_test

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// readValue reads one command or reply, and returns it as it was sent.
func readValue(r *bufio.Reader) (raw []byte, err error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return line, nil
		}
		rest := make([]byte, n+2)
		_, err = io.ReadFull(r, rest)
		return append(line, rest...), err
	case '%':
		n *= 2
		fallthrough
	case '*', '~', '>':
		for range n {
			value, err := readValue(r)
			if err != nil {
				return nil, err
			}
			line = append(line, value...)
		}
	}
	return line, nil
}

// words returns the words of a command.
func words(raw []byte) (words []string) {
	if raw[0] != '*' { // an inline command, which ends with the line
		return append(strings.Fields(string(raw)), "")
	}
	r := bufio.NewReader(strings.NewReader(string(raw)))
	_, _ = r.ReadString('\n')
	for {
		length, err := r.ReadString('\n')
		if err != nil {
			return words
		}
		n, _ := strconv.Atoi(strings.TrimSpace(length[1:]))
		word := make([]byte, n+2)
		_, _ = io.ReadFull(r, word)
		words = append(words, string(word[:n]))
	}
}
