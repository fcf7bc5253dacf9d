// Package problem writes the bodies of refusals: problem details (RFC 9457), with the types and the
// extension member of draft-ietf-httpapi-ratelimit-headers.
package problem

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// ContentType is the content type of the bodies.
const ContentType = "application/problem+json"

// The problem types. The zero value is about:blank.
const (
	QuotaExceeded   = "quota-exceeded"
	AbnormalUsage   = "abnormal-usage-detected"
	ReducedCapacity = "temporary-reduced-capacity"
)

const types = "https://iana.org/assignments/http-problem-types#"

// Details is the content of a body.
type Details struct {
	Type      string
	Status    int
	Message   string
	Violated  []string // the limits that the caller has exceeded
	Reference string   // or ""
}

// Body returns the body.
func (d *Details) Body() []byte {
	body := append(make([]byte, 0, 192+len(d.Message)+len(d.Reference)), `{"type":"`...)
	if d.Type == "" {
		body = append(body, "about:blank"...)
	} else {
		body = append(append(body, types...), d.Type...)
	}
	body = append(append(body, `","title":"`...), http.StatusText(d.Status)...) // nothing to escape
	body = strconv.AppendInt(append(body, `","status":`...), int64(d.Status), 10)
	body = AppendJSON(append(body, `,"detail":`...), d.Message)
	for i, title := range d.Violated {
		if i == 0 {
			body = append(body, `,"violated-policies":[`...)
		} else {
			body = append(body, ',')
		}
		body = AppendJSON(body, title)
	}
	if len(d.Violated) > 0 {
		body = append(body, ']')
	}
	if d.Reference != "" {
		body = AppendJSON(append(body, `,"reference":`...), d.Reference)
	}
	return append(body, '}')
}

// AppendJSON appends a text as encoding/json does. It calls encoding/json only if something must be
// escaped.
func AppendJSON(dst []byte, text string) []byte {
	for i := range len(text) {
		if !plain[text[i]] {
			quoted, _ := json.Marshal(text) // a string: it cannot fail
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}

// plain has the printable bytes of ASCII that encoding/json does not escape. Comparing each byte with
// what it escapes took a tenth of a refusal's instructions ("refused" in BenchmarkCheck of core).
var plain = func() (bytes [256]bool) {
	for c := ' '; c <= '~'; c++ {
		bytes[c] = !strings.ContainsRune(`"\<>&`, c)
	}
	return bytes
}()
