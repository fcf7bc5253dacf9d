package accesslog

import (
	"net/http"
	"strings"
)

// variables are nginx's names for what a line can say of a call. Those that proxies of other kinds
// write are here under names of their own. All other variables are skipped.
var variables = map[string]field{
	"remote_addr":          {kind: "address"},
	"remote_user":          {kind: "user"},
	"time_local":           {kind: "time"},
	"time_iso8601":         {kind: "time"},
	"msec":                 {kind: "time"},
	"request":              {kind: "request"},
	"request_method":       {kind: "method"},
	"request_uri":          {kind: "uri"},
	"uri":                  {kind: "uri"},
	"host":                 {kind: "host"},
	"http_host":            {kind: "host"},
	"status":               {kind: "status"},
	"request_time":         {kind: "seconds"},
	"request_milliseconds": {kind: "milliseconds"},
	"content_length":       {kind: "size"},
	"http_content_length":  {kind: "size"},
}

// variableField returns the field that a variable of nginx or an operator of Envoy stands for.
func variableField(name string) (field, bool) {
	if f, ok := variables[name]; ok {
		return f, true
	}
	if header, ok := strings.CutPrefix(name, "http_"); ok {
		return field{"header", http.CanonicalHeaderKey(strings.ReplaceAll(header, "_", "-"))}, true
	}
	if cookie, ok := strings.CutPrefix(name, "cookie_"); ok {
		return field{"cookie", cookie}, true
	}
	return operatorField(name)
}
