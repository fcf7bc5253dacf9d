package connectlimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/accesslimit/accesslimit/core/adaptertest"
)

// httpStatus maps codes to the HTTP statuses of the same outcome; other codes map to 500.
var httpStatus = map[connect.Code]int{
	0: 200, connect.CodeResourceExhausted: 429, connect.CodeUnauthenticated: 401, connect.CodeUnavailable: 503, connect.CodeCanceled: 503,
	connect.CodeDeadlineExceeded: 503, connect.CodeInvalidArgument: 400, connect.CodeUnimplemented: 404, connect.CodeNotFound: 404,
}

// client makes calls of one kind with connect's client.
type client struct {
	transport *http.Transport
	kind      connect.StreamType
	options   []connect.ClientOption
}

func connectTo(kind connect.StreamType, options ...connect.ClientOption) func(testing.TB, adaptertest.Dial) adaptertest.Client {
	return func(_ testing.TB, dial adaptertest.Dial) adaptertest.Client {
		transport := &http.Transport{Protocols: new(http.Protocols), DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}
		transport.Protocols.SetUnencryptedHTTP2(true)
		return client{transport, kind, options}
	}
}

// Close implements adaptertest.Client.
func (c client) Close() { c.transport.CloseIdleConnections() }

// Do implements adaptertest.Client.
func (c client) Do(t testing.TB, call adaptertest.Call) adaptertest.Reply {
	t.Helper()
	host := "service.test"
	if call.Host != "" {
		host = call.Host
	}
	client := connect.NewClient[empty, text](&http.Client{Transport: c.transport}, "http://"+host+call.Path, c.options...)
	ctx, info := connect.NewClientContext(call.Until())
	for name, values := range call.Header {
		for _, value := range values {
			if strings.HasSuffix(name, "-Bin") {
				value = connect.EncodeBinaryHeader([]byte(value))
			}
			info.RequestHeader().Add(name, value)
		}
	}
	body, err := invoke(ctx, client, c.kind)
	if ctx.Err() != nil {
		return adaptertest.Reply{}
	}
	reply := adaptertest.Reply{Body: body, Header: make(http.Header), Status: 200}
	for _, lines := range []http.Header{info.ResponseHeader(), info.ResponseTrailer()} {
		for name, values := range lines {
			reply.Header[name] = append(reply.Header[name], values...)
		}
	}
	if err != nil {
		readError(t, &reply, err)
	}
	for _, name := range ofProtocol {
		reply.Header.Del(name)
	}
	return reply
}

// ofProtocol are the headers and trailers of connect itself.
var ofProtocol = []string{
	"Vary", "Accept-Encoding", "Content-Encoding", "Connect-Accept-Encoding", "Connect-Content-Encoding",
	"Grpc-Accept-Encoding", "Grpc-Encoding", "Grpc-Status", "Grpc-Message", "Grpc-Status-Details-Bin",
}

// invoke makes a call of one kind.
func invoke(ctx context.Context, client *connect.Client[empty, text], kind connect.StreamType) (string, error) {
	switch kind {
	case connect.StreamTypeServer:
		stream, err := client.CallServerStream(ctx, connect.NewRequest(new(empty)))
		if err != nil {
			return "", err
		}
		defer func() { _ = stream.Close() }()
		var body string
		for stream.Receive() {
			body += stream.Msg().Value
		}
		return body, stream.Err()
	case connect.StreamTypeClient:
		stream := client.CallClientStream(ctx)
		_ = stream.Send(new(empty)) // how the stream ends, CloseAndReceive says
		return valueOf(stream.CloseAndReceive())
	case connect.StreamTypeBidi:
		return readBidi(client.CallBidiStream(ctx))
	}
	return valueOf(client.CallUnary(ctx, connect.NewRequest(new(empty))))
}

func valueOf(response *connect.Response[wrapperspb.StringValue], err error) (string, error) {
	if err != nil {
		return "", err
	}
	return response.Msg.Value, nil
}

func readBidi(stream *connect.BidiStreamForClient[empty, text]) (body string, err error) {
	_ = stream.Send(new(empty)) // how the stream ends, Receive says
	_ = stream.CloseRequest()
	defer func() { _ = stream.CloseResponse() }()
	for {
		message, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return body, nil
		} else if err != nil {
			return body, err
		}
		body += message.Value
	}
}

func readError(t testing.TB, reply *adaptertest.Reply, err error) {
	t.Helper()
	refusal := new(connect.Error)
	if !errors.As(err, &refusal) {
		t.Fatalf("the error %v has no code", err)
	}
	reply.Outcome, reply.Status, reply.Body = int(refusal.Code()), httpStatus[refusal.Code()], refusal.Message()
	if reply.Status == 0 {
		reply.Status = 500
	}
	reply.Header = refusal.Meta()
	for _, detail := range refusal.Details() {
		value, err := detail.Value()
		if err != nil {
			t.Fatal(err)
		}
		switch value := value.(type) {
		case *errdetails.RetryInfo:
			if want := fmt.Sprint(math.Ceil(value.RetryDelay.AsDuration().Seconds())); reply.Header.Get("Retry-After") != want {
				t.Errorf("Retry-After is %q, want %s, as in RetryInfo", reply.Header.Get("Retry-After"), want)
			}
		case *errdetails.RequestInfo:
			reply.Header.Set("Refusal-Reference", value.ServingData)
		case *errdetails.QuotaFailure:
			for _, violation := range value.Violations {
				reply.Violated = append(reply.Violated, violation.Subject)
			}
		}
	}
}
