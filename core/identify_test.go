package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

var errVerify = errors.New("the session store is down")

// verify knows alice's token and cookie, and fails for "down".
func verify(_ context.Context, token string) (string, error) {
	switch token {
	case "alice-token", "alice-session", "two words":
		return "alice", nil
	case "down":
		return "", errVerify
	}
	return "", nil
}

// identified is what an Identify function says of a call, through the limiter as in a service.
func identified(t *testing.T, identify core.IdentifyFunc, v core.View) (user string, err error) {
	t.Helper()
	limiter := newLimiter(t, core.Options{Identify: identify})
	guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 1, Key: func(r core.Request) (string, error) {
		user, err = r.User()
		return "", nil
	}})
	wantStatus(t, guard, v, 200)
	return user, err
}

func TestIdentify(t *testing.T) {
	call := func() *fakeView { return newView("GET", "/") }
	bearer, cookie := core.BearerToken(verify), core.Cookie("session", verify)
	for _, test := range []struct {
		name     string
		identify core.IdentifyFunc
		view     *fakeView
		user     string
		fails    bool
	}{
		{"bearer", bearer, call().with("Authorization", "Bearer alice-token"), "alice", false},
		{"scheme in small letters, more spaces", bearer, call().with("Authorization", "bearer   alice-token "), "alice", false},
		{"bearer of two words", bearer, call().with("Authorization", "Bearer two words"), "alice", false},
		{"wrong token", bearer, call().with("Authorization", "Bearer nobody"), "", false},
		{"no header", bearer, call(), "", false},
		{"no token", bearer, call().with("Authorization", "Bearer "), "", false},
		{"only the scheme", bearer, call().with("Authorization", "Bearer"), "", false},
		{"only the token", bearer, call().with("Authorization", "alice-token"), "", false},
		{"another scheme", bearer, call().with("Authorization", "Basic alice-token"), "", false},
		{"no space", bearer, call().with("Authorization", "Beareralice-token"), "", false},
		{"two headers", bearer, call().with("Authorization", "Bearer alice-token").with("Authorization", "Bearer bob-token"), "", false},
		{"verify fails", bearer, call().with("Authorization", "Bearer down"), "", true},

		{"cookie", cookie, call().with("Cookie", "a=b; session=alice-session; c=d"), "alice", false},
		{"cookie in quotes", cookie, call().with("Cookie", `session="alice-session"`), "alice", false},
		{"cookie on the second line", cookie, call().with("Cookie", "a=b").with("Cookie", "session=alice-session"), "alice", false},
		{"the first of two", cookie, call().with("Cookie", "session=nobody; session=alice-session"), "", false},
		{"no cookie", cookie, call(), "", false},
		{"other case", cookie, call().with("Cookie", "Session=alice-session"), "", false},
		{"empty cookie", cookie, call().with("Cookie", "session="), "", false},
		{"rubbish", cookie, call().with("Cookie", ";;=;\x00"), "", false},
		{"verify fails for a cookie", cookie, call().with("Cookie", "session=down"), "", true},

		{"value of a middleware", whoSays, call().as("alice"), "alice", false},
		{"no value", whoSays, call(), "", false},

		{"first of none", core.FirstOf(), call(), "", false},
		{"the first knows", core.FirstOf(bearer, cookie), call().with("Authorization", "Bearer alice-token").with("Cookie", "session=down"), "alice", false},
		{"the second knows", core.FirstOf(bearer, cookie), call().with("Cookie", "session=alice-session"), "alice", false},
		{"the first fails", core.FirstOf(bearer, cookie), call().with("Authorization", "Bearer down").with("Cookie", "session=alice-session"), "", true},
		{"none knows", core.FirstOf(bearer, cookie, whoSays), call(), "", false},

		{"Identify unset", nil, call().as("alice"), "", false},
		{"a user beside an error is none", func(core.Request) (string, error) { return "alice", errVerify }, call(), "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			user, err := identified(t, test.identify, test.view)
			if user != test.user || (err != nil) != test.fails || test.fails && !errors.Is(err, errVerify) {
				t.Errorf("%q, %v; want %q, error %v", user, err, test.user, test.fails)
			}
		})
	}
}

func TestContextValueTakesOnlyStrings(t *testing.T) {
	for _, value := range []any{42, []byte("alice"), errVerify, nil} {
		v := newView("GET", "/")
		v.values["user"] = value
		if user, err := identified(t, whoSays, v); user != "" || err != nil {
			t.Errorf("%v is %q, %v", value, user, err)
		}
	}
}

// A header is found in any spelling: a View need know the canonical one only.
func TestHeadersAreFoundInAnySpelling(t *testing.T) {
	v := newView("GET", "/").with("X-Api-Key", "k")
	user, _ := identified(t, func(r core.Request) (string, error) {
		return strings.Join(r.Header("x-API-key"), ","), nil
	}, v)
	if user != "k" {
		t.Errorf("Request.Header found %q", user)
	}
}
