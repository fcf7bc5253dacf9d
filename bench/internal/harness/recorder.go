package harness

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
)

// Recorder is a proxy in front of a redis-server that records the scripts which pass through it. So
// a script is measured exactly as the library sends it, even after the library has changed.
type Recorder struct {
	listener net.Listener
	upstream string

	mu    sync.Mutex
	on    bool
	calls [][]string
}

// NewRecorder starts a proxy in front of a server.
func NewRecorder(upstream string) (*Recorder, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Recorder{listener: l, upstream: upstream}
	go r.serve()
	return r, nil
}

// Addr returns the address to which clients connect.
func (r *Recorder) Addr() string { return r.listener.Addr().String() }

// Close stops accepting connections.
func (r *Recorder) Close() { _ = r.listener.Close() }

// Record returns the script calls that are made while do runs.
func (r *Recorder) Record(do func() error) ([][]string, error) {
	r.mu.Lock()
	r.on, r.calls = true, nil
	r.mu.Unlock()
	err := do()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = false
	return r.calls, err
}

func (r *Recorder) serve() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.upstream)
		if err != nil {
			_ = client.Close()
			continue
		}
		go func() {
			_, _ = io.Copy(client, server)
			_ = client.Close()
		}()
		go func() {
			_ = r.forward(server, client)
			_ = server.Close()
		}()
	}
}

// forward passes a client's commands on to the server, and records the scripts.
func (r *Recorder) forward(server io.Writer, client io.Reader) error {
	in, out := bufio.NewReader(client), bufio.NewWriter(server)
	for {
		command, err := readCommand(in)
		if err != nil {
			return err
		}
		r.note(command)
		if _, err := out.Write(Encode(command)); err != nil {
			return err
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func (r *Recorder) note(command []string) {
	switch strings.ToLower(command[0]) {
	case "evalsha", "fcall":
		r.mu.Lock()
		if r.on {
			r.calls = append(r.calls, command)
		}
		r.mu.Unlock()
	}
}

var errProtocol = errors.New("harness: not the Redis protocol")

// readCommand reads an array of bulk strings.
func readCommand(in *bufio.Reader) ([]string, error) {
	n, err := readLength(in, '*')
	if err != nil || n < 1 {
		return nil, errors.Join(err, errProtocol)
	}
	command := make([]string, n)
	for i := range command {
		size, err := readLength(in, '$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		command[i] = string(text[:size])
	}
	return command, nil
}

func readLength(in *bufio.Reader, kind byte) (int, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 3 || line[0] != kind {
		return 0, errProtocol
	}
	return strconv.Atoi(string(line[1 : len(line)-2]))
}

// Encode returns a command in the Redis protocol.
func Encode(command []string) []byte {
	b := strconv.AppendInt([]byte{'*'}, int64(len(command)), 10)
	b = append(b, '\r', '\n')
	for _, arg := range command {
		b = strconv.AppendInt(append(b, '$'), int64(len(arg)), 10)
		b = append(append(append(b, '\r', '\n'), arg...), '\r', '\n')
	}
	return b
}
