package examples_test

import (
	"bufio"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/accesslimit/accesslimit/internal/bounded"
)

var printedPage = regexp.MustCompile(`The operator's page is (http://127\.0\.0\.1:\d+/) \(your name, and the password (\w{20,})\)`)

// page is the operator's page of a running example.
type page struct {
	*service
	at     string // its URL
	login  string // a header line
	client *http.Client
}

func (s *service) page(name string) page {
	s.t.Helper()
	p, password := page{service: s, at: "http://example/console/", client: s.client}, "secret"
	if name == "quickstart" {
		printed := printedPage.FindStringSubmatch(s.about)
		if printed == nil {
			s.t.Fatalf("prints no page: %s", s.about)
		}
		p.at, password, p.client = printed[1], printed[2], &http.Client{Transport: &http.Transport{}}
		s.t.Cleanup(p.client.CloseIdleConnections)
	}
	p.login = "Basic " + base64.StdEncoding.EncodeToString([]byte("alice:"+password))
	return p
}

// do makes a request as alice, the operator.
func (p page) do(method, path, body string, header ...string) *http.Response {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.at+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", p.login)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	reply, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	bounded.Cleanup(p.t, func() { _ = reply.Body.Close() })
	return reply
}

func (p page) get(path string) (body string) {
	p.t.Helper()
	reply := p.do(http.MethodGet, path, "")
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: status %d, %v: %s", path, reply.StatusCode, err, text)
	}
	return string(text)
}

// Each HTTP example has the operator's page, for operators only. It is live, bans and unbans, and
// does not keep the service from ending.
func TestOperatorsPage(t *testing.T) {
	for _, name := range ownWays {
		t.Run(name, func(t *testing.T) {
			s := start(t, name, "OPERATOR_TOKEN=secret")
			p := s.page(name)
			stranger := p
			stranger.login = "Basic " + base64.StdEncoding.EncodeToString([]byte("alice:wrong"))
			if got := stranger.do(http.MethodGet, "", ""); got.StatusCode != http.StatusUnauthorized || got.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("a stranger gets status %d, %v", got.StatusCode, got.Header)
			}
			wantIn(t, p.get(""), "<h1>Now</h1>", "alice, operator")
			live := bufio.NewReader(p.do(http.MethodGet, "live", "").Body)
			for {
				line, err := live.ReadString('\n')
				if err != nil {
					t.Fatalf("the page is not live: %v", err)
				}
				if strings.HasPrefix(line, "data: ") {
					break
				}
			}
			p.tryToBan()
			defer killAfterPatience(s.process).Stop()
			s.signal(syscall.SIGTERM) // while a reader is there
			if err := s.process.Wait(); err != nil {
				t.Errorf("it did not end in order: %v\n%s", err, s.logged)
			}
			s.ended = true
		})
	}
}

// tryToBan bans the test's own address by a form, and unbans it by the API.
func (p page) tryToBan() {
	p.t.Helper()
	form := p.do(http.MethodGet, "subject?subject=127.0.0.1", "")
	text, _ := io.ReadAll(form.Body)
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindSubmatch(text)
	if token == nil || len(form.Cookies()) != 1 {
		p.t.Fatalf("no form: %s", text)
	}
	fields := url.Values{"rule": {"api"}, "subject": {"127.0.0.1"}, "for": {"1h"}, "note": {"a test"}, "token": {string(token[1])}}
	p.do(http.MethodPost, "ban", fields.Encode(), "Content-Type", "application/x-www-form-urlencoded",
		"Sec-Fetch-Site", "same-origin", "Cookie", form.Cookies()[0].Name+"="+form.Cookies()[0].Value)
	if got := p.call("GET /"); got.status != http.StatusTooManyRequests {
		p.t.Errorf("after the ban, a call gets status %d", got.status)
	}
	wantIn(p.t, p.get("bans"), "ip:127.0.0.1", "a test")
	p.do(http.MethodPost, "api/unban", `{"rule": "api", "subject": "127.0.0.1", "note": "over"}`, "Content-Type", "application/json")
	if got := p.call("GET /"); got.status != http.StatusOK {
		p.t.Errorf("after the end of the ban, a call gets status %d", got.status)
	}
	wantIn(p.t, p.get("audit"), "<td>unban</td>", "<td>alice</td>")
}
