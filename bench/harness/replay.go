package harness

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Replay sends total commands to a database of a server over several connections, and measures the
// server. It repeats the given commands in order, with depth commands in flight on each connection.
func (s *Server) Replay(db int, commands [][]byte, total, connections, depth int) (*Outcome, error) {
	o := &Outcome{Decisions: int64(total), Allowed: int64(total), Latency: NewLatency()}
	return o, o.during(s, func() error {
		var group errgroup.Group
		for c := range connections {
			group.Go(func() error {
				return replay(s.Addr, db, commands, c*len(commands)/connections, total/connections, depth)
			})
		}
		return group.Wait()
	})
}

func replay(addr string, db int, commands [][]byte, from, total, depth int) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 1<<16)
	sent := bytes.NewBuffer(Encode([]string{"select", strconv.Itoa(db)}))
	for done, n := -1, 1; done < total; n = min(depth, total-done) {
		if _, err := sent.WriteTo(conn); err != nil {
			return err
		}
		for range n {
			if err := skipReply(in); err != nil {
				return err
			}
		}
		done += n
		for i := range min(depth, total-done) {
			sent.Write(commands[(from+done+i)%len(commands)])
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
	kind, text := line[0], strings.TrimSpace(string(line[1:]))
	n, _ := strconv.Atoi(text)
	switch kind {
	case '-':
		return errors.New("redis: " + text)
	case '$':
		if n >= 0 {
			_, err = in.Discard(n + 2)
		}
	case '*':
		for range n {
			if err := skipReply(in); err != nil {
				return err
			}
		}
	}
	return err
}

// Encode returns a command in the Redis protocol.
func Encode(command []string) []byte {
	var b bytes.Buffer
	length := func(kind byte, n int) {
		b.WriteByte(kind)
		b.WriteString(strconv.Itoa(n) + "\r\n")
	}
	length('*', len(command))
	for _, arg := range command {
		length('$', len(arg))
		b.WriteString(arg + "\r\n")
	}
	return b.Bytes()
}
