package connectlimit

import (
	"context"
	"errors"
	"net/http"
	"os"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/accesslimit/accesslimit/core"
)

// outcome returns the code that the caller gets.
func outcome(err error) (code int) {
	coded := new(connect.Error)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded) && coded != nil:
		return int(coded.Code())
	case errors.Is(err, context.Canceled), isReset(err):
		return int(connect.CodeCanceled)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return int(connect.CodeDeadlineExceeded)
	}
	return int(connect.CodeUnknown)
}

// refuse returns the error of a refusal. It has a RetryInfo only if waiting helps, because clients
// retry then. A reference is the serving data of a RequestInfo, which clients attach to feedback.
func refuse(c call, r *core.Refusal) error {
	refusal := connect.NewError(connect.Code(r.Code), errors.New(r.Message))
	setHeader(c, refusal.Meta(), r)
	if r.RetryAfter > 0 {
		add(refusal, &errdetails.RetryInfo{RetryDelay: durationpb.New(r.RetryAfter)})
	}
	if len(r.Violated) > 0 {
		failure := new(errdetails.QuotaFailure)
		for _, title := range r.Violated {
			failure.Violations = append(failure.Violations, &errdetails.QuotaFailure_Violation{Subject: title, Description: r.Message})
		}
		add(refusal, failure)
	}
	if r.Reference != "" {
		add(refusal, &errdetails.RequestInfo{ServingData: r.Reference})
	}
	return refusal
}

// setHeader sets the headers of a refusal, or the trailers. connect drops the Content-Type, and
// net/http logs other names that HTTP forbids in trailers.
func setHeader(c call, header http.Header, r *core.Refusal) {
	r.SetHeader(header)
	if hasHeader(c) {
		return
	}
	header.Del("Cache-Control")
	header.Del("Www-Authenticate")
	r.SetPushback(header)
}

func add(refusal *connect.Error, detail proto.Message) {
	if encoded, err := connect.NewErrorDetail(detail); err == nil {
		refusal.AddDetail(encoded)
	}
}
