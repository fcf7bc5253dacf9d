package harness

import (
	"bufio"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Replay sends total commands to a database of a server over several connections. It repeats the
// given commands in order, with depth commands in flight on each connection, and returns how long
// that took.
func Replay(addr string, db int, commands [][]byte, total, connections, depth int) (time.Duration, error) {
	var group errgroup.Group
	began := time.Now()
	for c := range connections {
		share := total / connections
		group.Go(func() error { return replay(addr, db, commands, c*len(commands)/connections, share, depth) })
	}
	err := group.Wait()
	return time.Since(began), err
}

func replay(addr string, db int, commands [][]byte, from, total, depth int) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	in, out := bufio.NewReaderSize(conn, 1<<16), bufio.NewWriterSize(conn, 1<<16)
	if _, err := conn.Write(Encode([]string{"select", strconv.Itoa(db)})); err != nil {
		return err
	}
	if err := skipReply(in); err != nil {
		return err
	}
	for done := 0; done < total; done += depth {
		n := min(depth, total-done)
		for i := range n {
			if _, err := out.Write(commands[(from+done+i)%len(commands)]); err != nil {
				return err
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
		for range n {
			if err := skipReply(in); err != nil {
				return err
			}
		}
	}
	return nil
}

// skipReply reads one reply. If the reply is an error of the server, it returns that error.
func skipReply(in *bufio.Reader) error {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if len(line) < 3 {
		return errProtocol
	}
	switch line[0] {
	case '-':
		return errors.New("redis: " + strings.TrimSpace(string(line[1:])))
	case '$':
		n := atoi(line[1 : len(line)-2])
		if n >= 0 {
			_, err = in.Discard(n + 2)
		}
		return err
	case '*':
		for range atoi(line[1 : len(line)-2]) {
			if err := skipReply(in); err != nil {
				return err
			}
		}
	}
	return nil
}

// atoi reads a number without an allocation. It returns -1 if the text is not a number.
func atoi(digits []byte) (n int) {
	for _, d := range digits {
		if d < '0' || d > '9' {
			return -1
		}
		n = 10*n + int(d-'0')
	}
	return n
}
