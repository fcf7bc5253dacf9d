package core

import (
	"context"
	"fmt"
	"strings"
)

// BearerToken returns a function that identifies callers by "Authorization: Bearer TOKEN" (RFC
// 6750). A call without such a header is not logged in. Of several lines the first counts, which is
// the one that handlers get, too.
//
// verify checks a token and returns its user. It returns "" and no error if the token is not valid, or
// no longer. An error means that it could not be checked. It may keep the token.
func BearerToken(verify func(ctx context.Context, token string) (user string, err error)) func(Request) (string, error) {
	must(verify != nil, "BearerToken needs a function that verifies tokens")
	return func(r Request) (string, error) {
		scheme, token, _ := strings.Cut(firstLine(r, "Authorization"), " ")
		token = strings.TrimSpace(token)
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			return "", nil
		}
		return verify(r.Context(), strings.Clone(token))
	}
}

// Cookie returns a function that identifies callers by the first cookie of this name. verify checks a
// session as [BearerToken]'s does a token.
func Cookie(name string, verify func(ctx context.Context, session string) (user string, err error)) func(Request) (string, error) {
	must(verify != nil, "Cookie needs a function that verifies sessions")
	return func(r Request) (string, error) {
		session := r.Cookie(name)
		if session == "" {
			return "", nil
		}
		return verify(r.Context(), strings.Clone(session))
	}
}

// ContextValue returns a function that identifies callers by the value that an authentication
// middleware before this one left under a key: a string in the framework's own store (gin's Set,
// echo's Set, fiber's Locals) or in the context. With any other value, the call is not logged in,
// and the log warns of that once.
func ContextValue(key any) func(Request) (string, error) {
	must(usableAsKey(key), "ContextValue needs a key that can be compared")
	return func(r Request) (string, error) {
		value := r.Value(key)
		user, isText := value.(string)
		if !isText && value != nil {
			warnOfValue(r, key, value)
		}
		return strings.Clone(user), nil
	}
}

// warnOfValue logs that a value is not a string, if r is the limiter's own Request.
func warnOfValue(r Request, key, value any) {
	own, ok := r.(interface{ warnOfValue(key, value string) })
	if !ok {
		return
	}
	name, isText := key.(string)
	if !isText {
		name = fmt.Sprintf("%T", key)
	}
	own.warnOfValue(name, fmt.Sprintf("%T", value))
}

// FirstOf returns a function that calls the given ones in order, until one returns a user or an
// error.
func FirstOf(identify ...func(Request) (string, error)) func(Request) (string, error) {
	for _, ask := range identify {
		must(ask != nil, "FirstOf needs functions, not nil")
	}
	return func(r Request) (string, error) {
		for _, ask := range identify {
			if user, err := ask(r); user != "" || err != nil {
				return user, err
			}
		}
		return "", nil
	}
}
