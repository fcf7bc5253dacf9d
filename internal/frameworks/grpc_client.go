package frameworks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/accesslimit/accesslimit/core/adaptertest"
)

// httpStatus maps codes to the HTTP statuses of the same outcome; other codes map to 500.
var httpStatus = map[codes.Code]int{
	codes.OK: 200, codes.ResourceExhausted: 429, codes.Unauthenticated: 401, codes.Unavailable: 503, codes.Canceled: 503,
	codes.DeadlineExceeded: 503, codes.InvalidArgument: 400, codes.Unimplemented: 404, codes.NotFound: 404,
}

// Invoke makes a call of one kind, unary or a stream.
type Invoke func(ctx context.Context, conn *grpc.ClientConn, method string, options ...grpc.CallOption) (text string, err error)

// InvokeGRPC returns the Invoke of a kind. A stream sends one message, and reads until it ends.
func InvokeGRPC(kind grpc.StreamDesc) Invoke {
	if isUnary(kind) {
		return invokeUnary
	}
	return invokeStream(kind)
}

func invokeUnary(ctx context.Context, conn *grpc.ClientConn, method string, options ...grpc.CallOption) (string, error) {
	text := new(wrapperspb.StringValue)
	err := conn.Invoke(ctx, method, new(emptypb.Empty), text, options...)
	return text.Value, err
}

func invokeStream(kind grpc.StreamDesc) Invoke {
	return func(ctx context.Context, conn *grpc.ClientConn, method string, options ...grpc.CallOption) (text string, err error) {
		stream, err := conn.NewStream(ctx, &kind, method, options...)
		if err != nil {
			return "", err
		}
		if err = stream.SendMsg(new(emptypb.Empty)); err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		_ = stream.CloseSend() // how the stream ends, RecvMsg says
		for {
			message := new(wrapperspb.StringValue)
			if err = stream.RecvMsg(message); errors.Is(err, io.EOF) {
				return text, nil
			} else if err != nil {
				return text, err
			}
			text += message.Value
			if !kind.ServerStreams {
				return text, nil
			}
		}
	}
}

// grpcClient makes calls of one kind.
type grpcClient struct {
	*grpc.ClientConn
	invoke Invoke
}

// Close implements adaptertest.Client.
func (c grpcClient) Close() { _ = c.ClientConn.Close() }

// Do implements adaptertest.Client.
func (c grpcClient) Do(t testing.TB, call adaptertest.Call) adaptertest.Reply {
	t.Helper()
	ctx := call.Until()
	for name, values := range call.Header {
		for _, value := range values {
			ctx = metadata.AppendToOutgoingContext(ctx, name, value)
		}
	}
	var header, trailer metadata.MD
	options := []grpc.CallOption{grpc.Header(&header), grpc.Trailer(&trailer)}
	if call.Host != "" {
		options = append(options, grpc.CallAuthority(call.Host))
	}
	text, err := c.invoke(ctx, c.ClientConn, call.Path, options...)
	if ctx.Err() != nil {
		return adaptertest.Reply{}
	}
	code := status.Code(err)
	reply := adaptertest.Reply{Status: httpStatus[code], Outcome: int(code), Header: make(http.Header), Body: text}
	if reply.Status == 0 {
		reply.Status = 500
	}
	for name, values := range trailer {
		for _, value := range values {
			reply.Header.Add(name, value)
		}
	}
	if err != nil {
		readStatus(t, &reply, status.Convert(err), header)
	}
	return reply
}

func readStatus(t testing.TB, reply *adaptertest.Reply, refusal *status.Status, header metadata.MD) {
	t.Helper()
	reply.Body = refusal.Message()
	for _, detail := range refusal.Details() {
		switch detail := detail.(type) {
		case *errdetails.RetryInfo:
			reply.Header.Set("Retry-After", fmt.Sprint(int(detail.RetryDelay.AsDuration().Seconds()+0.999)))
		case *errdetails.RequestInfo:
			reply.Header.Set("Refusal-Reference", detail.ServingData)
		case *errdetails.QuotaFailure:
			for _, violation := range detail.Violations {
				reply.Violated = append(reply.Violated, violation.Subject)
			}
		}
	}
	for name := range header {
		if strings.HasPrefix(name, "ratelimit") || strings.HasPrefix(name, "x-ratelimit") {
			t.Errorf("a refusal sent the header %s, which keeps clients from retrying", name)
		}
	}
}

// ConnectGRPC returns a connection that dial opens.
func ConnectGRPC(t testing.TB, dial adaptertest.Dial) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///service.test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
