package grpclimit

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/accesslimit/accesslimit/core/outgoing"
)

// UnaryClientInterceptor returns an interceptor whose unary calls take turns, and read RetryInfo and
// grpc-retry-pushback-ms. The functions of the outgoing.Rule receive the call as a POST request to its
// method, with the metadata as headers. A call that would have to wait too long ends with
// RESOURCE_EXHAUSTED, and errors.As finds an *outgoing.WaitError in it.
//
// The attempts of a retry policy in the service config run below interceptors, so they share a turn.
// Use an interceptor that repeats calls instead, above this one, and grpc.WithDisableRetry.
func UnaryClientInterceptor(turns *outgoing.Turns) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		turn, err := takeTurn(ctx, turns, conn.Target(), method)
		if err != nil {
			return err
		}
		defer turn.Release()
		var trailer metadata.MD
		err = invoke(ctx, method, req, reply, conn, slices.Concat(options, []grpc.CallOption{grpc.Trailer(&trailer)})...)
		report(turn, err, trailer)
		return err
	}
}

// StreamClientInterceptor is UnaryClientInterceptor for streams. A stream takes one turn, and holds its
// slot until it ends.
func StreamClientInterceptor(turns *outgoing.Turns) grpc.StreamClientInterceptor {
	return func(ctx context.Context, of *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
		turn, err := takeTurn(ctx, turns, conn.Target(), method)
		if err != nil {
			return nil, err
		}
		opened := false
		defer func() {
			if !opened { // also after a panic
				turn.Release()
			}
		}()
		finished, finish := context.WithCancel(context.Background())
		turn.ReleaseAfter(finished) // in a goroutine of its own: gRPC holds a lock when a stream finishes
		// The context of the stream would say the same, but asking for it ends retries.
		options = append(slices.Clip(options), grpc.OnFinish(func(error) { finish() }))
		stream, err := open(ctx, of, conn, method, options...)
		if err != nil {
			report(turn, err, nil)
			return nil, err
		}
		opened = true
		return &clientStream{stream, turn, of.ServerStreams}, nil
	}
}

// clientStream is a stream that holds a turn.
type clientStream struct {
	grpc.ClientStream
	turn *outgoing.Turn
	many bool // the server sends any number of messages
}

// RecvMsg implements grpc.ClientStream.
func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil && s.many {
		s.turn.Answered(outgoing.Answer{})
		return nil
	}
	report(s.turn, unlessEOF(err), s.Trailer())
	s.turn.Release()
	return err
}

// unlessEOF returns nil for the end of a stream without an error.
func unlessEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// takeTurn waits for the turn of a call.
func takeTurn(ctx context.Context, turns *outgoing.Turns, target, method string) (*outgoing.Turn, error) {
	sent, _ := metadata.FromOutgoingContext(ctx)
	turn, err := turns.TakeRPC(ctx, hostOf(target), method, sent)
	var wait *outgoing.WaitError
	switch {
	case errors.As(err, &wait):
		return nil, tooLong{wait}
	case err != nil && ctx.Err() != nil:
		return nil, status.FromContextError(err).Err()
	}
	return turn, err
}

// hostOf returns the end of a target such as dns:///example.com:443.
func hostOf(target string) string { return target[strings.LastIndexByte(target, '/')+1:] }

// tooLong is the error of a call that was not sent.
type tooLong struct{ *outgoing.WaitError }

// Unwrap implements errors.Unwrap.
func (e tooLong) Unwrap() error { return e.WaitError }

// GRPCStatus lets status.FromError find the status.
func (e tooLong) GRPCStatus() *status.Status { return status.New(codes.ResourceExhausted, e.Error()) }

// report reports how a call has ended, unless this client has ended it.
func report(turn *outgoing.Turn, err error, trailer metadata.MD) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	s := status.Convert(err)
	ended := outgoing.RPCStatus{Code: int(s.Code()), Message: s.Message(), Pushback: trailer.Get("grpc-retry-pushback-ms")}
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			ended.RetryDelay = max(ended.RetryDelay, info.GetRetryDelay().AsDuration())
		}
	}
	turn.AnsweredRPC(ended)
}
