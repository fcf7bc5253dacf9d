package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/grpclimit"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/frameworks"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// serveAll starts a server that handles every method, and returns its address.
func serveAll(t *testing.T, handle func(grpc.ServerStream) error) (addr string) {
	t.Helper()
	return started(t, grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error { return handle(s) })))
}

// started starts a server, and returns its address.
func started(t *testing.T, server *grpc.Server) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	bounded.Cleanup(t, server.Stop)
	return listener.Addr().String()
}

// takingTurns connects to a server by both interceptors.
func takingTurns(t *testing.T, addr string, rule outgoing.Rule, options ...grpc.DialOption) (*grpc.ClientConn, counted) {
	t.Helper()
	rule.Name, rule.Limit = "backend", core.PerSecond(1000).Bucket(1000)
	limiter := limitertest.New(t, core.Options{})
	turns, err := outgoing.New(limiter, rule)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("dns:///"+addr, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(grpclimit.UnaryClientInterceptor(turns)), grpc.WithStreamInterceptor(grpclimit.StreamClientInterceptor(turns)))...)
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, func() { _ = conn.Close() })
	return conn, counted{turns, limiter}
}

// counted are the turns of a client, with their counts.
type counted struct {
	*outgoing.Turns
	limiter *core.Limiter
}

// Stats returns the counts of the only rule.
func (c counted) Stats() core.OutgoingStats { return c.limiter.Stats().Outgoing[0] }

// reply is what a server replies, and what the client makes of it.
type reply struct {
	code     codes.Code
	retry    time.Duration // in a RetryInfo
	pushback string
	refused  bool
	wait     time.Duration // of the pause; 0: there is none
}

func (r *reply) send(s grpc.ServerStream) error {
	if r.pushback != "" {
		s.SetTrailer(metadata.Pairs("grpc-retry-pushback-ms", r.pushback))
	}
	if r.code == codes.OK {
		return s.SendMsg(wrapperspb.String("text"))
	}
	st := status.New(r.code, "of the server")
	if r.retry != 0 {
		st, _ = st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(r.retry)})
	}
	return st.Err()
}

func TestClientsReadWhatTheServerSays(t *testing.T) {
	for name, test := range map[string]reply{
		"answered":             {code: codes.OK},
		"not found":            {code: codes.NotFound},
		"refused":              {code: codes.ResourceExhausted, refused: true, wait: time.Second},
		"RetryInfo":            {code: codes.ResourceExhausted, retry: time.Minute, refused: true, wait: time.Minute},
		"pushback":             {code: codes.ResourceExhausted, pushback: "60000", refused: true, wait: time.Minute},
		"the longer counts":    {code: codes.ResourceExhausted, retry: time.Second, pushback: "60000", refused: true, wait: time.Minute},
		"never repeat":         {code: codes.ResourceExhausted, pushback: "-1", refused: true, wait: time.Second},
		"no number":            {code: codes.ResourceExhausted, pushback: "soon", refused: true, wait: time.Second},
		"a pushback of ages":   {code: codes.ResourceExhausted, pushback: "99999999999999", refused: true, wait: time.Second},
		"RetryInfo of ages":    {code: codes.ResourceExhausted, retry: math.MaxInt64, refused: true, wait: 15 * time.Minute},
		"a negative RetryInfo": {code: codes.ResourceExhausted, retry: -time.Hour, refused: true, wait: time.Second},
		"unavailable":          {code: codes.Unavailable},
		"unavailable for now":  {code: codes.Unavailable, retry: time.Minute, refused: true, wait: time.Minute},
	} {
		addr := serveAll(t, test.send)
		for kind, invoke := range kinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				conn, turns := takingTurns(t, addr, outgoing.Rule{InFlight: 1, MaxWait: 20 * time.Millisecond})
				ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer alice")
				if _, err := invoke(ctx, conn, "/a.B/C"); status.Code(err) != test.code {
					t.Fatalf("the call ended with %v", err)
				}
				if s := turns.Stats(); s.Sent != 1 || (s.Refused == 1) != test.refused || (s.Pauses == 1) != (test.wait > 0) {
					t.Errorf("the counts are %+v", s)
				}
				if test.wait > 0 {
					wantNotSent(t, ctx, conn, invoke, test.wait)
				}
				if _, err := invoke(context.Background(), conn, "/a.B/C"); status.Code(err) != test.code {
					t.Errorf("the call of somebody else ended with %v", err)
				}
			})
		}
	}
}

// kinds are calls of each kind.
var unary = frameworks.InvokeGRPC(grpc.StreamDesc{})

var kinds = map[string]frameworks.Invoke{
	"unary": unary, "of the server": frameworks.InvokeGRPC(grpc.StreamDesc{ServerStreams: true}),
	"of the client": frameworks.InvokeGRPC(grpc.StreamDesc{ClientStreams: true}), "both": frameworks.InvokeGRPC(grpc.StreamDesc{ServerStreams: true, ClientStreams: true}),
}

// wantNotSent checks that a call waits for a pause that lasts about so long, and that its error is this
// process's own. A pause of a second may be over by now.
func wantNotSent(t *testing.T, ctx context.Context, conn *grpc.ClientConn, invoke frameworks.Invoke, lasts time.Duration) {
	t.Helper()
	_, err := invoke(ctx, conn, "/a.B/C")
	var wait *outgoing.WaitError
	if isShort := lasts == time.Second; isShort && !errors.As(err, &wait) {
		return
	} else if !errors.As(err, &wait) || !wait.Paused || wait.Wait > lasts || !isShort && wait.Wait < lasts/2 || status.Code(err) != codes.ResourceExhausted {
		t.Errorf("the call ended with %v", err)
	}
}

// A stream holds its slot until it ends: by its last message, by an error, by its context, even if nobody
// receives anything more, or with its connection.
func TestAStreamHoldsItsSlot(t *testing.T) {
	addr := serveAll(t, func(s grpc.ServerStream) error {
		if err := s.SendMsg(wrapperspb.String("text")); err != nil {
			return err
		}
		_ = s.RecvMsg(new(emptypb.Empty))
		return nil
	})
	for name, end := range map[string]func(s grpc.ClientStream, conn *grpc.ClientConn, cancel func()){
		"abandoned":  func(_ grpc.ClientStream, _ *grpc.ClientConn, cancel func()) { cancel() },
		"connection": func(_ grpc.ClientStream, conn *grpc.ClientConn, _ func()) { _ = conn.Close() },
		"error": func(s grpc.ClientStream, _ *grpc.ClientConn, _ func()) {
			if err := s.SendMsg("not a message"); err == nil {
				t.Error("anything can be sent")
			}
		},
		"ended": func(s grpc.ClientStream, _ *grpc.ClientConn, _ func()) {
			_ = s.CloseSend()
			if err := s.RecvMsg(new(wrapperspb.StringValue)); !errors.Is(err, io.EOF) {
				t.Errorf("the stream ended with %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn, turns := takingTurns(t, addr, outgoing.Rule{InFlight: 1, MaxWait: limitertest.Patient})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/a.B/C")
			if err != nil {
				t.Fatal(err)
			}
			if err := s.RecvMsg(new(wrapperspb.StringValue)); err != nil {
				t.Fatal(err)
			}
			limitertest.Eventually(t, "a second stream waits for its turn", func() bool {
				short, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
				defer stop()
				_, err := turns.Take(short, addr)
				if err == nil {
					t.Fatal("a second stream got a turn")
				}
				return errors.As(err, new(*outgoing.WaitError)) // otherwise the time was over before
			})
			end(s, conn, cancel)
			turn, err := turns.Take(context.Background(), addr)
			if err != nil {
				t.Fatal(err)
			}
			turn.Release()
		})
	}
}

// A stream that is never opened holds no slot, whether opening it fails or panics.
func TestAStreamThatIsNotOpenedHoldsNoSlot(t *testing.T) {
	for name, opener := range map[string]grpc.Streamer{
		"error": func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			return nil, status.Error(codes.Internal, "not opened")
		},
		"panic": func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			panic("not opened")
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn, turns := takingTurns(t, "127.0.0.1:1", outgoing.Rule{InFlight: 1, MaxWait: time.Second})
			for range 2 {
				func() {
					defer func() { _ = recover() }()
					_, err := grpclimit.StreamClientInterceptor(turns.Turns)(context.Background(), new(grpc.StreamDesc), conn, "/a.B/C", opener)
					if status.Code(err) != codes.Internal {
						t.Errorf("the stream ended with %v", err)
					}
				}()
			}
			if s := turns.Stats(); s.Sent != 2 {
				t.Errorf("the counts are %+v", s)
			}
		})
	}
}

// A message that is too large for the client was not refused by the server.
func TestALargeMessageIsNoRefusal(t *testing.T) {
	addr := serveAll(t, (&reply{code: codes.OK}).send)
	conn, turns := takingTurns(t, addr, outgoing.Rule{})
	if _, err := unary(context.Background(), conn, "/a.B/C", grpc.MaxCallRecvMsgSize(1)); status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("the call ended with %v", err)
	}
	if s := turns.Stats(); s.Refused != 0 || s.Pauses != 0 {
		t.Errorf("the counts are %+v", s)
	}
}

// The attempts of a retry policy share a turn, obey the pushback themselves, and end in one report, of
// streams too.
func TestARetryPolicy(t *testing.T) {
	for name, call := range kinds {
		t.Run(name, func(t *testing.T) { retried(t, call) })
	}
}

func retried(t *testing.T, call frameworks.Invoke) {
	var attempts atomic.Int64
	addr := serveAll(t, func(s grpc.ServerStream) error {
		// If the last refusal overtakes the message, which gRPC sends again in each attempt, gRPC tells
		// the end of the stream in place of the refusal.
		if err := s.RecvMsg(new(emptypb.Empty)); err != nil {
			return err
		}
		of := reply{code: codes.ResourceExhausted, pushback: "1"}
		if attempts.Add(1) == 3 {
			of = reply{code: codes.ResourceExhausted, pushback: "-1", retry: time.Minute}
		}
		return of.send(s)
	})
	conn, turns := takingTurns(t, addr, outgoing.Rule{InFlight: 1, MaxWait: time.Second}, grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}],
		"retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.01s", "maxBackoff": "0.01s", "backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`))
	if _, err := call(context.Background(), conn, "/a.B/C"); status.Code(err) != codes.ResourceExhausted || attempts.Load() != 3 {
		t.Errorf("after %d attempts: %v", attempts.Load(), err)
	}
	if s := turns.Stats(); s.Sent != 1 || s.Refused != 1 || s.Pauses != 1 {
		t.Errorf("the counts are %+v", s)
	}
	wantNotSent(t, context.Background(), conn, unary, time.Minute)
}
