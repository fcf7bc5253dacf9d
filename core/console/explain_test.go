package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
)

// sighted is a limiter whose functions note the credentials that they find in a call.
type sighted struct {
	*core.Limiter
	seen []string
}

type sessionKey struct{}

// look notes what a function of the service could tell a right credential by.
func (s *sighted) look(function string, r core.Request) {
	for _, text := range []string{
		strings.Join(r.Header("Authorization"), ""), strings.Join(r.Header("X-Api-Key"), ""), strings.Join(r.Header("X-Odd"), ""),
		r.Cookie("sid"), r.Query("api_key"), r.Query("odd"),
	} {
		if text != "" {
			s.seen = append(s.seen, function+" "+text)
		}
	}
	if r.Value(sessionKey{}) != nil {
		s.seen = append(s.seen, function+" the session of whoever uses the page")
	}
}

func newSighted(t *testing.T, options core.Options) *sighted {
	s := new(sighted)
	options.Identify = func(r core.Request) (string, error) {
		s.seen = append(s.seen, "Identify ran")
		return "mallory", nil
	}
	s.Limiter = newLimiter(t, options)
	attach(t, s.Limiter, core.Rule{
		Name: "api", Limit: core.PerHour(5), Plans: map[string]core.Limit{"pro": core.PerHour(50)},
		Key: func(r core.Request) (string, error) {
			s.look("Key", r)
			return core.ByUser(r)
		},
		Plan: func(r core.Request) (string, error) {
			s.look("Plan", r)
			return "", nil
		},
	})
	return s
}

// Nobody finds out by the page which credentials are right: the functions of the service do not see
// those that somebody types, nor those of the person who uses the page. Viewers name a user.
func TestExplainIsNoOracle(t *testing.T) {
	withBothEngines(t, func(t *testing.T, options core.Options) {
		s := newSighted(t, options)
		page := newPage(t, s.Limiter, console.Options{RedactSubjects: true, ReadOnly: true})
		ask := func(role, path, header string) answer {
			sent := "explain?method=GET&address=192.0.2.7&path=" + url.QueryEscape(path) + "&header=" + url.QueryEscape(header)
			html, json := as(t, role, page).get(sent), as(t, role, page).get("api/"+sent)
			if html.StatusCode != json.StatusCode {
				t.Errorf("%s asks about %s with %q: status %d, and in JSON %d", role, path, header, html.StatusCode, json.StatusCode)
			}
			return json
		}
		for _, typed := range [][2]string{
			{"/x", "Authorization: Bearer right"}, {"/x", "authorization:\tBearer right"}, {"/x", "Proxy-Authorization: Basic right"},
			{"/x", "Cookie: sid=right"}, {"/x", "X-Api-Key: right"}, {"/x", "X-Session-Id: right"}, {"/x", "X-Amz-Security-Token: right"},
			{"/x?api_key=right", ""}, {"/x?a=1&JWT=right", ""}, {"/x", "X-Auth: right"}, {"/x?sig=right", ""}, {"/x", "X-A: b\nauthorization: Bearer right"},
		} {
			for role, says := range map[string]string{"viewer": "only operators may", "operator": "name the user instead"} {
				if got := ask(role, typed[0], typed[1]); got.StatusCode != http.StatusBadRequest || !strings.Contains(got.body, says) {
					t.Errorf("%s asks with %q: status %d: %s", role, typed, got.StatusCode, got.body)
				}
			}
		}
		for _, typed := range [][2]string{{"/x", "X-Odd: right"}, {"/x?odd=right", ""}} { // it cannot be known what they are
			if got := ask("viewer", typed[0], typed[1]); got.StatusCode != http.StatusBadRequest {
				t.Errorf("a viewer asks with %q: status %d: %s", typed, got.StatusCode, got.body)
			}
		}
		if len(s.seen) > 0 {
			t.Fatalf("functions of the service have seen %q", s.seen)
		}
		if got := ask("operator", "/x?tenant=acme&author=b&keyword=c", "X-Tenant: acme"); got.StatusCode != http.StatusOK || len(s.seen) > 0 {
			t.Errorf("an operator asks without a credential: status %d, %q: %s", got.StatusCode, s.seen, got.body)
		}
		if got := as(t, "viewer", page).get("api/explain?path=/x&user=bob"); !strings.Contains(got.body, `"user":"subject-`) {
			t.Errorf("a viewer names a user: %s", got.body)
		}
	})
}

// The functions of the service find nothing of the request by which somebody asks the page.
func TestExplainSeesNothingOfThePagesOwnRequest(t *testing.T) {
	s := newSighted(t, core.Options{})
	r := httptest.NewRequest(http.MethodGet, "/limits/explain?path=/x", nil)
	got := as(t, "viewer", newPage(t, s.Limiter, console.Options{})).do(r.WithContext(context.WithValue(t.Context(), sessionKey{}, "alice")))
	if got.StatusCode != http.StatusOK || len(s.seen) > 0 {
		t.Errorf("status %d, %q", got.StatusCode, s.seen)
	}
}
