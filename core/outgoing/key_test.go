package outgoing

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/engine"
)

func TestByCredential(t *testing.T) {
	key := func(url string, header ...string) string {
		r, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return ByCredential(r)
	}
	const url = "https://API.example.com/a"
	if got := key(url); got != "api.example.com" {
		t.Errorf("without a credential: %q", got)
	}
	alice := key(url, "Authorization", "Bearer alices-secret")
	if strings.Contains(alice, "secret") || !strings.HasPrefix(alice, "api.example.com:") {
		t.Errorf("the key is %q", alice)
	}
	for name, other := range map[string]string{
		"another token": key(url, "Authorization", "Bearer bobs-secret"), "another host": key("https://b.example.com/a", "Authorization", "Bearer alices-secret"),
		"no token": key(url), "a key": key(url, "X-Api-Key", "secret"),
	} {
		if other == alice {
			t.Errorf("%s has the same key", name)
		}
	}
	const aws = "AWS4-HMAC-SHA256 Credential=AKID/%/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=%"
	for scheme, form := range map[string]string{"AWS": aws, "Digest": `Digest username="Mufasa", realm="%", response="%"`, "Signature": `Signature keyId="k",signature="%"`} {
		first, second := strings.ReplaceAll(form, "%", "1"), strings.ReplaceAll(form, "%", "2")
		if key(url, "Authorization", first) != key(url, "Authorization", second) {
			t.Errorf("%s: each request has a key of its own", scheme)
		}
	}
}

// Schemes that sign each request name the account in a parameter, which may be a quoted text of any kind.
func TestAccountsOfSignedRequests(t *testing.T) {
	for credential, want := range map[string]string{
		`AWS4-HMAC-SHA256 Credential=AKID/20261123/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=1`: "AKID",
		`Signature keyId="https://example.com/users/alice#main-key",signature="1"`:                             "https://example.com/users/alice#main-key",
		`Digest username="Alice, Jr", realm="id=x", response="1"`:                                              "Alice, Jr",
		`Digest realm="a", username="A\"B", response="1"`:                                                      `A\"B`,
		`Hawk id="dh37", ts="1", nonce="2"`:                                                                    "dh37", `OAuth realm="", oauth_token=abc%2Fd, oauth_nonce="1"`: "abc%2Fd",
		"Bearer secret": "Bearer secret", "": "",
	} {
		if got := account(credential); got != want {
			t.Errorf("%s: the account is %q, want %q", credential, got, want)
		}
	}
}

// A further pace takes the place of one that no longer counts, or of one other.
func TestPacesAreBounded(t *testing.T) {
	slow, own := new(engine.Limit), new(engine.Limit)
	var p paces
	set := func(key string) { p.entry(key).announce(slow, time.Now()) }
	for i := range maxPaces + 5 {
		set(strconv.Itoa(i))
	}
	if set("4"); len(p.byKey) > maxPaces || len(p.byKey) < maxPaces*9/10 || p.of("4", own) != slow || p.of(strconv.Itoa(maxPaces+4), own) != slow {
		t.Errorf("%d keys have a pace", len(p.byKey))
	}
	for _, of := range p.byKey {
		of.until = time.Time{}
	}
	for i := range maxPaces - len(p.byKey) {
		p.entry("more" + strconv.Itoa(i))
	}
	if set("new"); len(p.byKey) != 1 || p.of("4", own) != own {
		t.Errorf("%d keys have a pace once all others have ended", len(p.byKey))
	}
}

// Of several pauses that began without the store, the latest end is recorded, and that a call was
// refused.
func TestUnrecordedPausesAreJoined(t *testing.T) {
	var u unrecorded
	first, again := u.add("key", time.Hour, false), u.add("key", time.Minute, true)
	joined := u.of("key")
	if !first || again || !joined.refused || time.Until(joined.ends) < 30*time.Minute {
		t.Errorf("%v, %v, %+v", first, again, joined)
	}
	if u.remove("key", unrecordedPause{ends: joined.ends}) || !u.remove("key", joined) || u.of("key") != (unrecordedPause{}) {
		t.Error("a pause that changed meanwhile was removed, or one that did not was kept")
	}
}
