package core

import (
	"context"
	"reflect"
	"strings"
)

// IdentifyFunc returns who calls, or "" for a caller who is not logged in. An error means that the
// caller could not be identified, and a rule with NeedLogin then answers 503, not 401; but a call
// that a limit independent of the user refuses gets 429. The function runs at most once a call in
// each middleware that needs the user, however many rules that has. It does not run for calls that
// need no user, nor for those that a limit independent of the user refused just before and still
// refuses.
type IdentifyFunc func(Request) (user string, err error)

// VerifyFunc checks a token or a session and names its user; "" and no error when it is not, or no longer, valid. An error
// means that it could not be checked. The token is the function's to keep.
type VerifyFunc func(ctx context.Context, token string) (user string, err error)

// BearerToken identifies by "Authorization: Bearer TOKEN" (RFC 6750). A call with no such header, or with several, is nobody's.
func BearerToken(verify VerifyFunc) IdentifyFunc {
	must(verify != nil, "BearerToken needs a function that verifies tokens")
	return func(r Request) (string, error) {
		lines := r.Header("Authorization")
		if len(lines) != 1 {
			return "", nil
		}
		scheme, token, _ := strings.Cut(lines[0], " ")
		token = strings.TrimSpace(token)
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			return "", nil
		}
		return verify(r.Context(), strings.Clone(token))
	}
}

// Cookie identifies by the first cookie of this name.
func Cookie(name string, verify VerifyFunc) IdentifyFunc {
	must(verify != nil, "Cookie needs a function that verifies sessions")
	return func(r Request) (string, error) {
		session := r.Cookie(name)
		if session == "" {
			return "", nil
		}
		return verify(r.Context(), strings.Clone(session))
	}
}

// ContextValue identifies by what an authentication middleware before this one left under a key: a string in the
// framework's own store (gin's Set, echo's Set, fiber's Locals) or in the context. Anything but a string is nobody.
func ContextValue(key any) IdentifyFunc {
	must(usableAsKey(key), "ContextValue needs a key that can be compared")
	return func(r Request) (string, error) {
		user, _ := r.Value(key).(string)
		return strings.Clone(user), nil
	}
}

// FirstOf asks one after the other until one knows the caller or fails.
func FirstOf(identify ...IdentifyFunc) IdentifyFunc {
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

// must panics while a service is put together, so that nothing panics in a request.
func must(right bool, what string) {
	if !right {
		panic("core: " + what)
	}
}

func usableAsKey(key any) bool { return key != nil && reflect.TypeOf(key).Comparable() }
