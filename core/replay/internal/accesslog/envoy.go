package accesslog

import (
	"cmp"
	"net/http"
	"strings"
)

// envoyText is the form of the lines that Envoy writes by default. It has no address but those in
// X-Forwarded-For, of which an Envoy at the edge has added the last one.
var envoyText = namedPattern{
	text: `[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% ` +
		`%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% ` + envoyCaller,
	fields: map[field][]string{{kind: "address"}: {"REQ(X-FORWARDED-FOR)"}},
}

// istioText is the form of the lines that Istio lets Envoy write by default.
var istioText = namedPattern{
	text: `[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% ` +
		`%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "%UPSTREAM_TRANSPORT_FAILURE_REASON%" ` +
		`%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% ` + envoyCaller +
		` %UPSTREAM_CLUSTER% %UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% `,
}

const envoyCaller = `"%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%"`

// operators are the fields of a call that Envoy's operators stand for, except those for headers. Other
// operators are skipped.
var operators = map[string]field{
	"START_TIME":                             {kind: "start"},
	"DURATION":                               {kind: "milliseconds"},
	"RESPONSE_CODE":                          {kind: "status"},
	"BYTES_RECEIVED":                         {kind: "size"},
	"DOWNSTREAM_REMOTE_ADDRESS":              {kind: "address"},
	"DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT": {kind: "address"},
}

// requestLine are the headers of a request in which HTTP/2 has what HTTP/1 has in the first line.
var requestLine = map[string]field{":METHOD": {kind: "method"}, ":PATH": {kind: "uri"}, ":AUTHORITY": {kind: "host"}}

// operatorName returns the name of an operator without the length to which its value is cut:
// REQ(:PATH) for %REQ(:PATH):100%.
func operatorName(text string) string {
	text = strings.Trim(text, "%")
	return text[:cmp.Or(strings.LastIndexByte(text, ')')+1, len(text))]
}

// operatorField returns the field that an operator stands for. REQ(X?Y) is the header Y of a request
// without X.
func operatorField(name string) (field, bool) {
	command, argument, _ := strings.Cut(name, "(")
	if command != "REQ" && command != "REQUEST_HEADER" {
		f, ok := operators[command]
		return f, ok
	}
	header, otherwise, _ := strings.Cut(strings.TrimSuffix(argument, ")"), "?")
	if f, ok := requestLine[strings.ToUpper(cmp.Or(otherwise, header))]; ok {
		return f, true
	}
	return field{"header", http.CanonicalHeaderKey(header)}, header != ""
}
