package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/panics"
	"github.com/redis/go-redis/v9"
)

// probe finds out, with a connection of its own, why no connection to a server can be set up. It
// sends only a PING, and no secret.
type probe struct {
	options *redis.Options
	*common
}

// probeTimeout bounds each of the at most two connections of a probe. It is usually longer than
// Timeout, so that a server that is merely too slow is recognized.
const probeTimeout = time.Second

// These are the findings of a probe, besides the errors of the network, of TLS and of the server
// itself.
var (
	errNoTLS    = errors.New("the server does not speak TLS there")
	errOnlyTLS  = errors.New("the server speaks TLS there")
	errNoMaster = errors.New("no Sentinel names a master, or the master does not answer")
	errNobody   = errors.New("nobody answers at that address")
	errSilent   = errors.New("the server accepts connections and does not answer")
	errClosing  = errors.New("the server closes new connections")
	errNotRedis = errors.New("what listens there does not speak Redis's protocol")
	errSlow     = errors.New("it takes longer than Timeout to set up a connection")
)

// failoverClient is the address that go-redis uses for the master that Sentinels name.
const failoverClient = "FailoverClient"

// Cause returns why a client with these options gets no connection, or nil if it can get one. It
// makes at most two connections, for about a second each.
func Cause(ctx context.Context, options *redis.Options, timeout time.Duration) error {
	c := newCommon(timeout)
	defer c.stop()
	return probe{options, c}.findCause(ctx)
}

// findCause returns why calls get no connection, or nil if they can get one. If the context ends,
// it returns at once, and the result is meaningless.
func (p probe) findCause(ctx context.Context) error {
	began := time.Now()
	err := p.ping(ctx)
	switch took := time.Since(began); {
	case err == nil && took >= p.timeout:
		return fmt.Errorf("%w: %v", errSlow, took.Round(time.Millisecond))
	case err == nil || !p.isUnexplained(err):
		return err
	case p.options.TLSConfig != nil && p.speaksPlain(ctx):
		return errNoTLS
	case p.options.TLSConfig == nil && p.speaksTLS(ctx):
		return errOnlyTLS
	}
	return err
}

// isUnexplained reports whether an error does not explain itself. Such errors occur if the client
// uses TLS and the server does not, or the other way round.
func (p probe) isUnexplained(err error) bool {
	var header tls.RecordHeaderError
	return errors.Is(err, errSilent) || errors.Is(err, errClosing) || errors.As(err, &header)
}

// ping connects as the client does, and sends a PING.
func (p probe) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := p.dial(ctx)
	if isHangUp(err) {
		return fmt.Errorf("%w: %w", errClosing, err)
	}
	if err != nil {
		return err
	}
	defer p.bindConn(ctx, conn)()
	if p.options.TLSConfig != nil {
		// A server that requires a client certificate says so now. If we sent anything first, its
		// message would be lost.
		if err := p.readAlert(ctx, conn); err != nil {
			return err
		}
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return noReply(err)
	}
	reply := make([]byte, 200)
	n, err := conn.Read(reply)
	if n == 0 {
		return noReply(err)
	}
	return p.readReply(string(reply[:n]))
}

// bindConn makes reads and writes end with the context. The caller must call the returned function,
// which closes the connection.
func (p probe) bindConn(ctx context.Context, conn net.Conn) (closeConn func()) {
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, panics.Guard(func() { _ = conn.SetDeadline(time.Unix(1, 0)) }, p.reportPanic))
	return func() {
		stop()
		_ = conn.Close()
	}
}

// readAlert waits a little for the server to end the connection.
func (p probe) readAlert(ctx context.Context, conn net.Conn) error {
	_ = conn.SetReadDeadline(time.Now().Add(probeTimeout / 20))
	if _, err := conn.Read(make([]byte, 1)); err != nil && !isTimeout(err) {
		return noReply(err)
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetReadDeadline(deadline)
	return ctx.Err() // if the context has ended, the deadline was set too late
}

// readReply returns what is wrong with the reply to a PING, or nil.
func (p probe) readReply(reply string) error {
	line, _, _ := strings.Cut(reply, "\r\n")
	switch {
	case strings.HasPrefix(line, "+"), strings.HasPrefix(line, "-NOAUTH"), strings.HasPrefix(line, "-NOPERM"):
		return nil
	case strings.HasPrefix(line, "-"):
		return errors.New(line[1:])
	case strings.HasPrefix(line, tlsAlert) && p.options.TLSConfig == nil:
		return errOnlyTLS
	}
	return fmt.Errorf("%w: it replies %.40q", errNotRedis, line)
}

// tlsAlert is how a TLS alert begins.
const tlsAlert = "\x15"

// noReply returns the error for a server that did not reply.
func noReply(err error) error {
	switch {
	case isTimeout(err):
		return errSilent
	case isAlert(err):
		return err
	}
	return fmt.Errorf("%w: %w", errClosing, err)
}

// dial connects by the client's own dialer, which may ignore the context.
func (p probe) dial(ctx context.Context) (net.Conn, error) {
	type dialed struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialed)
	give := func(conn net.Conn, err error) {
		select {
		case done <- dialed{conn, err}:
		case <-ctx.Done():
			if err == nil {
				_ = conn.Close()
			}
		}
	}
	go panics.Guard(
		func() { give(p.options.Dialer(ctx, p.options.Network, p.options.Addr)) },
		func(err error) {
			p.reportPanic(err)
			give(nil, err)
		},
	)()
	select {
	case d := <-done:
		if ended := errors.Is(d.err, context.DeadlineExceeded) || errors.Is(d.err, os.ErrDeadlineExceeded); !ended {
			return d.conn, d.err
		}
	case <-ctx.Done():
	}
	return nil, p.dialTimedOut()
}

// dialTimedOut returns the error for a connection that was not set up in time.
func (p probe) dialTimedOut() error {
	switch {
	case p.options.Addr == failoverClient:
		return errNoMaster
	case p.options.TLSConfig != nil:
		return errSilent
	}
	return errNobody
}

// speaksPlain reports whether the server answers without TLS.
func (p probe) speaksPlain(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, p.options.Network, p.options.Addr)
	if err != nil {
		return false
	}
	defer p.bindConn(ctx, conn)()
	first := make([]byte, 1)
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	_, err = conn.Read(first)
	return err == nil && (first[0] == '+' || first[0] == '-')
}

// speaksTLS reports whether the server answers with TLS. It does not verify the server's
// certificate, because it sends nothing there.
func (p probe) speaksTLS(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec
	conn, err := dialer.DialContext(ctx, p.options.Network, p.options.Addr)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil || isAlert(err)
}

// isHangUp reports whether the other side ended a connection without a reply.
func isHangUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isReset(err)
}

// isAlert reports whether the other side of a TLS connection sent an alert, which says what is
// wrong.
func isAlert(err error) bool {
	var said *net.OpError
	return errors.As(err, &said) && said.Op == "remote error"
}
