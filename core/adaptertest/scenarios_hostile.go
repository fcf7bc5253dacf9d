package adaptertest

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// hostileScenarios are about callers who send arbitrary bytes. Each must be counted as one caller,
// and as no other.
var hostileScenarios = []scenario{
	{name: "users of any name", run: hostileUsers},
	{name: "values of any bytes", run: hostileValues},
	{name: "header values of any bytes", run: hostileHeaders},
	{name: "cookies of any bytes", run: hostileCookies, httpOnly: true},
	{name: "subjects of any bytes", run: hostileSubjects, httpOnly: true},
	{name: "names of any bytes", run: hostileNames, httpOnly: true},
	{name: "errors of any bytes", run: hostileErrors},
	{name: "path parameters of any bytes", run: hostileParameters, httpOnly: true},
}

// once returns a rule that lets each caller call once.
func once(key core.KeyFunc) core.Rule {
	return core.Rule{Name: "rule", Seconds: 600, MaxCount: 1, Key: key}
}

// eachOnce calls once with each text, and then once more with each. The first call must pass and
// the second must be refused: a text that shares a counter is refused at its first call, and a text
// with two counters passes at its second. Calls that get 400 or 401 do not count. eachOnce returns
// how many passed.
func eachOnce(t *testing.T, texts []string, call func(text string) Reply) (admitted int) {
	t.Helper()
	first := make(map[string]int)
	for _, text := range texts {
		reply := call(text)
		wantSoundReply(t, reply)
		if first[text] = reply.Status; reply.Status == 200 {
			admitted++
		} else if reply.Status == 429 {
			t.Errorf("%.80q is refused at its first call: it shares a counter", text)
		}
	}
	for _, text := range texts {
		reply := call(text)
		wantSoundReply(t, reply)
		want := first[text]
		if want == 200 {
			want = 429
		}
		if reply.Status != want {
			t.Errorf("%.80q gets %d at its second call, want %d", text, reply.Status, want)
		}
	}
	return admitted
}

// wantAll checks that the server itself rejected no call.
func wantAll(t *testing.T, admitted int) {
	t.Helper()
	if admitted != len(hostileTexts) {
		t.Errorf("%d callers passed, want each of %d once", admitted, len(hostileTexts))
	}
}

// inBase64 returns the user that a token encodes.
func inBase64(_ context.Context, token string) (string, error) {
	user, err := base64.StdEncoding.DecodeString(token)
	return string(user), err
}

func bearer(text string) string {
	return "Authorization: Bearer " + base64.StdEncoding.EncodeToString([]byte(text))
}

func hostileUsers(t *testing.T, s *site) {
	var w witness
	rule := once(nil)
	rule.NeedLogin = true
	s.serve(t, App{
		Limiter: s.limiter(t, w.record, identifiedBy(core.BearerToken(inBase64))),
		Routes:  []Route{{Path: "/shop/list", limits: limit(rule)}},
	})
	wantAll(t, eachOnce(t, hostileTexts, func(text string) Reply { return s.get(t, "/shop/list", bearer(text)) }))
	w.wantSoundKeys(t, s, len(hostileTexts))
	w.wantSoundLog(t)
}

// said is the key of a context value that the outermost middleware sets.
type said struct{}

func hostileValues(t *testing.T, s *site) {
	var w witness
	var text string
	s.serve(t, App{
		Limiter: s.limiter(t, w.record),
		Before:  func(ctx context.Context) context.Context { return context.WithValue(ctx, said{}, text) },
		Routes:  []Route{{Path: "/shop/list", limits: limit(once(core.ByValue(said{})))}},
	})
	wantAll(t, eachOnce(t, hostileTexts, func(of string) Reply {
		text = of
		return s.get(t, "/shop/list")
	}))
	w.wantSoundKeys(t, s, len(hostileTexts))
	w.wantSoundLog(t)
}

// hostileHeaders sends the texts in a header: unchanged in HTTP, or as binary metadata in an RPC.
// HTTP cannot express some texts, and servers refuse others. The rest must be counted.
func hostileHeaders(t *testing.T, s *site) {
	var w witness
	const name = "X-Key-Bin"
	texts := hostileTexts
	if !s.adapter.RPC {
		texts = oneLine(hostileTexts)
	}
	s.serve(t, App{Limiter: s.limiter(t, w.record), Routes: []Route{{Path: "/shop/list", limits: limit(once(core.ByHeader(name)))}}})
	admitted := eachOnce(t, texts, func(text string) Reply { return s.raw(t, "GET", "/shop/list", name+": "+text) })
	if admitted < len(texts)/2 {
		t.Errorf("%d callers of %d passed", admitted, len(texts))
	}
	w.wantSoundKeys(t, s, admitted)
	w.wantSoundLog(t)
}

// oneLine returns the texts that a header line can hold: those without line ends and without white
// space around them.
func oneLine(texts []string) (of []string) {
	for _, text := range texts {
		if !strings.ContainsAny(text, "\r\n") && strings.Trim(text, " \t") == text {
			of = append(of, text)
		}
	}
	return of
}

// hostileCookies sends the texts as session cookies. Each session that is looked up must pass once.
func hostileCookies(t *testing.T, s *site) {
	var w witness
	var mu sync.Mutex
	asked := make(map[string]bool)
	rule := once(nil)
	rule.NeedLogin = true
	s.serve(t, App{
		Limiter: s.limiter(t, w.record, identifiedBy(core.Cookie("session", func(_ context.Context, token string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[token] = true
			return token, nil
		}))),
		Routes: []Route{{Path: "/shop/list", limits: limit(rule)}},
	})
	var admitted int
	for range 2 {
		for _, text := range oneLine(hostileTexts) {
			reply := s.raw(t, "GET", "/shop/list", "Cookie: a=b; session="+text+"; c=d")
			wantSoundReply(t, reply)
			if reply.Status == 200 {
				admitted++
			}
		}
	}
	if admitted != len(asked) || admitted < 20 {
		t.Errorf("%d calls passed for %d sessions", admitted, len(asked))
	}
	w.wantSoundKeys(t, s, admitted)
	w.wantSoundLog(t)
}

func hostileSubjects(t *testing.T, s *site) {
	var w witness
	var subject string
	limiter := s.limiter(t, w.record)
	check := limiter.MustCheck(once(nil))
	s.serve(t, App{Limiter: limiter, Routes: []Route{{Path: "/shop/list", Handle: func(h Handling) {
		if h.Allow(check, subject) {
			h.Text("ok")
		}
	}}}})
	wantAll(t, eachOnce(t, hostileTexts, func(text string) Reply {
		subject = text
		return s.get(t, "/shop/list")
	}))
	w.wantSoundKeys(t, s, len(hostileTexts))
	w.wantSoundLog(t)
}

// hostileNames makes rules with the texts as their names. A name that headers cannot carry must be
// an error. Any other name must be in the header unchanged.
func hostileNames(t *testing.T, s *site) {
	var w witness
	var name string
	limiter := s.limiter(t, w.record)
	s.serve(t, App{Limiter: limiter, Routes: []Route{{Path: "/shop/list", Handle: func(h Handling) {
		rule := once(nil)
		rule.Name = name
		if check, err := limiter.Check(rule); err != nil {
			h.Reply(500)
		} else if h.Allow(check, "somebody") {
			h.Text("ok")
		}
	}}}})
	var wrong int
	admitted := eachOnce(t, hostileTexts, func(text string) Reply {
		name = text
		reply := s.get(t, "/shop/list")
		label, _, _ := strings.Cut(reply.Header.Get("Ratelimit"), ";r=0;t=")
		switch title, err := strconv.Unquote(label); {
		case reply.Status == 500:
			wrong++
		case err != nil || title != text:
			t.Errorf("the name %q is in the header as %q: %v", text, label, err)
		}
		return reply
	})
	if admitted+wrong/2 != len(hostileTexts) || wrong == 0 {
		t.Errorf("%d names were taken and %d were not, of %d", admitted, wrong/2, len(hostileTexts))
	}
	w.wantSoundKeys(t, s, admitted)
	w.wantSoundLog(t)
}

// hostileErrors puts the texts into errors, which are logged once a minute for each rule.
func hostileErrors(t *testing.T, s *site) {
	var w witness
	fails := func(_ context.Context, token string) (string, error) {
		text, _ := inBase64(context.Background(), token)
		return "", fmt.Errorf("no session %s", text)
	}
	limiter := s.limiter(t, w.record, identifiedBy(core.BearerToken(fails)))
	var routes []Route
	for i := range hostileTexts[:90] {
		rule := core.Rule{Name: fmt.Sprint("rule", i), Seconds: 600, NeedLogin: true}
		routes = append(routes, Route{Path: fmt.Sprintf("/shop/list%d", i), limits: limit(rule)})
	}
	s.serve(t, App{Limiter: limiter, Routes: routes})
	for i, text := range hostileTexts[:90] {
		wantSoundReply(t, s.want(t, 503, fmt.Sprintf("/shop/list%d", i), bearer(text)))
	}
	if lines := w.wantSoundLog(t); lines < 90 {
		t.Errorf("%d lines were logged, want one for each of 90 rules", lines)
	}
	w.wantSoundKeys(t, s, 0)
}

// hostileParameters checks that no path parameter gets into a key or a header: all of them are one
// route.
func hostileParameters(t *testing.T, s *site) {
	var w witness
	s.serve(t, App{Limiter: s.limiter(t, w.record), Routes: []Route{{Path: "/shop/{id}", limits: limit(core.Rule{Seconds: 600, MaxCount: 5})}}})
	var served int
	for _, text := range hostileTexts {
		var escaped strings.Builder
		for i := range len(text) {
			fmt.Fprintf(&escaped, "%%%02x", text[i])
		}
		reply := s.doRaw(t, "GET", "/shop/"+escaped.String())
		wantSoundReply(t, reply)
		if reply.Status == 200 {
			served++
		}
	}
	if served != 5 {
		t.Errorf("%d calls of one route were served, want 5", served)
	}
	w.wantSoundKeys(t, s, 1)
	w.wantSoundLog(t)
}
