package faults_test

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// visit is a call as an adapter shows it to a guard. Its subject is in a header.
type visit struct {
	ctx     context.Context
	subject string
}

// callerHeader is the header with the subject of a visit.
const callerHeader = "X-Caller"

// byCaller is a Key for rules that count visits by their subjects.
func byCaller(r core.Request) (string, error) { return r.Header(callerHeader)[0], nil }

func (v visit) Context() context.Context             { return v.ctx }
func (v visit) Method() string                       { return http.MethodGet }
func (v visit) Path() string                         { return "/" }
func (v visit) Route() string                        { return "/" }
func (v visit) RemoteAddr() netip.Addr               { return netip.Addr{} }
func (v visit) Host() string                         { return "" }
func (v visit) Header(name string) []string          { return v.headers()[name] }
func (v visit) Query(string) string                  { return "" }
func (v visit) Param(string) string                  { return "" }
func (v visit) Cookie(string) string                 { return "" }
func (v visit) Value(key any) any                    { return v.ctx.Value(key) }
func (v visit) Size() int64                          { return -1 }
func (v visit) ResponseHeader() adapter.HeaderWriter { return http.Header{} }

func (v visit) headers() http.Header { return http.Header{callerHeader: {v.subject}} }
