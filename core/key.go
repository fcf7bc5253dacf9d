package core

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"reflect"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/clientip"
	"github.com/accesslimit/accesslimit/core/internal/route"
)

// KeyFunc returns the subject that a call is counted for. For "", the call is counted by the
// client's IP: no call is unlimited because something was missing. With an error, the call gets
// 503. The subject is escaped, or hashed if it is long. Pass secrets through [Digest] first.
//
// Danger: put a word of your own in front of subjects that callers choose ("tenant:" + name).
// Otherwise a caller can choose ip:203.0.113.7 and use up somebody else's permits.
type KeyFunc func(Request) (subject string, err error)

// ByIP counts by the client's address: ip:203.0.113.7, ip:2001:db8::/64. All callers without an
// address share ip:unknown.
func ByIP(r Request) (string, error) { return ipSubject(r), nil }

// ByUser counts by the user that Options.Identify returned, as user:alice, and by IP for callers
// who are not logged in. Without Identify these are all callers, and the log warns of that.
func ByUser(r Request) (string, error) {
	user, err := r.User()
	if err != nil || user == "" {
		return "", err
	}
	return "user:" + user, nil
}

// ByHeader counts by the value of a header, as header:NAME:DIGEST, and by IP if the header is
// missing. Of several lines the first counts, which is the one that the getters of all frameworks
// return: a handler that reads another line needs a KeyFunc of its own. Host is the host in lower
// case and with its port; in gRPC it is :authority. The value is always hashed, because it may be
// an API key; [Digest] returns the same hash. Danger: callers choose their headers, so add a rule
// by IP beside it.
func ByHeader(name string) KeyFunc {
	prefix := "header:" + strings.ToLower(name) + ":"
	return func(r Request) (string, error) {
		value := firstLine(r, name)
		if value == "" {
			return "", nil
		}
		return prefix + Digest(value), nil
	}
}

// firstLine returns the first value of a header, or "".
func firstLine(r Request, name string) string {
	if lines := r.Header(name); len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// ByHost counts all calls to a host together, as host:NAME, and by IP if the call names no host.
// Danger: callers choose the host, unless the server or a proxy refuses hosts that it does not
// serve.
func ByHost(r Request) (string, error) {
	if host := r.Host(); host != "" {
		return "host:" + host, nil
	}
	return "", nil
}

// ByQuery counts by the first value of a query parameter, as query:NAME:DIGEST, and by IP if it is
// missing. The value is always hashed, because it may be an API key; [Digest] returns the same
// hash. Danger: callers choose it, so add a rule by IP beside it.
func ByQuery(name string) KeyFunc {
	return func(r Request) (string, error) {
		value := r.Query(name)
		if value == "" {
			return "", nil
		}
		return "query:" + name + ":" + Digest(value), nil
	}
}

// ByParam counts by the text that a wildcard of the route matched, as param:NAME:VALUE, and by IP
// if it matched nothing. The text is decoded, also where the framework leaves that to the handler, as
// chi, echo and fiber do: otherwise each spelling of it, such as %61lice, would have its own counter.
func ByParam(name string) KeyFunc {
	return func(r Request) (string, error) {
		value := r.Param(name)
		if value == "" {
			return "", nil
		}
		if decoded, err := url.PathUnescape(value); err == nil {
			value = decoded
		}
		return "param:" + name + ":" + value, nil
	}
}

// ByValue counts by the value that an earlier middleware left under a key, as value:VALUE, and by
// IP if there is none.
func ByValue(key any) KeyFunc {
	must(usableAsKey(key), "ByValue needs a key that can be compared")
	return func(r Request) (string, error) {
		switch value := r.Value(key).(type) {
		case nil:
			return "", nil
		case string:
			if value == "" {
				return "", nil
			}
			return "value:" + value, nil
		default:
			return fmt.Sprintf("value:%v", value), nil
		}
	}
}

// ByRoute counts all callers of a route together, as METHOD and pattern, also under a rule that
// other routes share.
func ByRoute(r Request) (string, error) { return route.Name(r.Method(), r.Route()), nil }

// Global counts all calls under the rule together. The subject is the rule's name.
func Global(r Request) (string, error) { return r.Rule(), nil }

// Join counts by several keys at once, each combination by itself. A key that is missing is
// replaced by the IP.
func Join(keys ...KeyFunc) KeyFunc {
	for _, key := range keys {
		must(key != nil, "Join needs functions, not nil")
	}
	escape := strings.NewReplacer("%", "%25", "|", "%7C")
	return func(r Request) (string, error) {
		parts := make([]string, len(keys))
		for i, key := range keys {
			part, err := key(r)
			if err != nil {
				return "", err
			}
			if part == "" {
				part = ipSubject(r)
			}
			parts[i] = escape.Replace(part)
		}
		return strings.Join(parts, "|"), nil
	}
}

// ipSubject returns the subject of the client's address. If r is the limiter's own Request,
// addresses are grouped as the limiter is configured.
func ipSubject(r Request) string {
	if own, ok := r.(interface{ ipSubject() string }); ok {
		return own.ipSubject()
	}
	return defaultClientIPs.Subject(r.ClientIP())
}

// defaultClientIPs groups addresses as a Limiter with the zero ClientIP does.
var defaultClientIPs, _ = clientip.New(clientip.Config{})

// Digest returns the form in which a secret becomes part of a subject: the first 128 bits of its
// SHA-256, in lower-case hex.
func Digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:16])
}

// must panics unless right is true. It is called while a service starts, so nothing panics in a
// request.
func must(right bool, what string) {
	if !right {
		panic("core: " + what)
	}
}

func usableAsKey(key any) bool { return key != nil && reflect.TypeOf(key).Comparable() }
