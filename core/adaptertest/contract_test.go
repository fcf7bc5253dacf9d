package adaptertest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// contractMistakes are the mistakes of wrongAdapter, and what the contract says of them.
var contractMistakes = map[string]string{
	"": "",

	"Context":        "View.Context returned <nil>",
	"Method":         `View.Method returned "post", want "POST"`,
	"Path":           `View.Path returned "/shown/7?colour=blue", want "/shown/7"`,
	"Route":          `View.Route returned "/shown/7" for /shown/7 and "/shown/8" for /shown/8, want the one pattern`,
	"Route in Use":   `View.Route in a middleware of the whole router returned "/shown/{id}", want ""`,
	"RemoteAddr":     `View.RemoteAddr returned "invalid IP", want "192.0.2.7"`,
	"Header":         `View.Header("X-Shown") returned []string{"one"}, want []string{"one", "two"}`,
	"Host":           `View.Host returned "", want "service.test"`,
	"Query":          `View.Query("colour") returned "", want "blue"`,
	"Param":          `View.Param("id") returned "", want "7"`,
	"Cookie":         `View.Cookie("colour") returned "", want "red"`,
	"Value":          `View.Value(inFront{}) returned <nil>, want "context"`,
	"stored Value":   `View.Value("adaptertest") returned <nil>, want "store"`,
	"Size":           `View.Size returned -1, want 5`,
	"unknown Size":   `View.Size returned 0, want -1, or 1`,
	"ResponseHeader": `View.ResponseHeader returned a HeaderWriter whose headers are not sent`,
	"anyCase":        `View.Loose must report anyCase`,
	"anySlash":       `View.Loose must report anySlash`,

	"no Check":           "the middleware did not pass a call to Guard.Check",
	"no refusal":         "the middleware let the handler go on though Answer.Refusal was set",
	"refusal's Status":   "the middleware sent a refusal with status 200, want Refusal.Status, 429",
	"refusal's headers":  "the middleware sent a refusal without the headers of Refusal.SetHeader",
	"refusal's Body":     "the middleware sent a refusal without Refusal.Body",
	"no handler":         "the middleware must run the handler when Answer.Refusal is nil",
	"Run's outcome":      "Count received 200, want the outcome that was sent, 404",
	"no Finish":          "as if Response.Finish was not called after Answer.Run",
	"Answer.Context":     "the middleware did not pass Answer.Context to the handler",
	"Allow":              "Allow let the handler go on though Answer.Refusal was set",
	"OwnLimits' headers": "OwnLimits did not send the headers of core.OwnLimits.SetHeader",
	"OwnLimits' status":  "OwnLimits sent status 200 to a caller who has to log in, want 401",
	"OwnLimits' body":    "OwnLimits sent \"\", want what core.OwnLimits.Reply returns",

	"no recovery":    "GET /recovery/missing: no reply: ",
	"Serve's routes": "GET /contract/free, to which no rule applies, got status 404",
}

// contractHangs are mistakes that make the contract wait for as long as its patience lasts.
var contractHangs = map[string]string{
	"Serve blocks": "Serve did not return within 10s",
	"stop blocks":  "the function that Serve returned did not end the server within 10s",
	"no reply":     "GET /contract/free: no reply within 10s",
	"no Run":       "the middleware did not run the handler in Answer.Run: Count received nothing within 10s",
}

// TestContractNamesTheMistake makes an adapter wrong in one thing at a time. The contract's first
// complaint must name it.
func TestContractNamesTheMistake(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for wrong, want := range contractMistakes {
		all.Go(func() {
			complaints := contractOf(t, wrong)
			if len(complaints) == 0 {
				complaints = []string{""}
			}
			if first := complaints[0]; first != want && (want == "" || !strings.Contains(first, want)) {
				t.Errorf("%s: the complaints are %q, want %q first", wrong, complaints, want)
			}
		})
	}
	all.Wait()
}

// contractOf returns the complaints of the contract about a mistake.
func contractOf(t testing.TB, wrong string) []string {
	return complaintsOf(t, func(t testing.TB) {
		a := Adapter{Serve: wrongAdapter(wrong).serve, Connect: connectHTTP, Cannot: noRouteInUse}
		a.contract(t)
	})
}

var noRouteInUse = map[Feature]string{RouteInUse: "the middleware does not know the mux"}

// TestRunEnds runs whole suites that must fail, each in a process of its own.
func TestRunEnds(t *testing.T) {
	const variable = "ACCESSLIMIT_TEST_SUITE"
	suites := map[string]struct {
		run  func(t *testing.T)
		want string
	}{
		"wrong address": {
			func(t *testing.T) { Run(t, Adapter{Serve: wrongAdapter("RemoteAddr").serve, Cannot: noRouteInUse}) },
			"View.RemoteAddr returned",
		},
		"unknown feature": {
			func(t *testing.T) { Run(t, Adapter{Cannot: map[Feature]string{"levitation": "it is heavy"}}) },
			`there is no feature "levitation"; there are ["the route in Use"`,
		},
		"no reason": {
			func(t *testing.T) { Run(t, Adapter{Cannot: map[Feature]string{UnixSockets: ""}}) },
			`"unix sockets" needs a reason`,
		},
		"a scenario that waits": {
			func(t *testing.T) {
				waits := scenario{name: "waits", run: func(t *testing.T, s *site) {
					s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/shop/list"}}})
					s.enter(t, newGate(t), "/shop/list")
				}}
				a := Adapter{Serve: wrongAdapter("no reply").serve, Connect: connectHTTP}
				a.run(t, append([]scenario{waits}, limitScenarios...), inProcess)
			},
			`the scenario "waits" waited in vain, so the ones after it are skipped`,
		},
		"a wrong method": {
			func(t *testing.T) {
				asks := scenario{name: "asks", run: func(t *testing.T, s *site) {
					rule := core.Rule{Name: "shop", Seconds: 600, MaxCount: 2, Key: core.ByHeader("Host")}
					s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/shop/list", limits: limit(rule)}}})
					s.want(t, 200, "/shop/list", "Host: a.test", "X-Hop: one")
					t.Error("something is wrong")
				}}
				Adapter{Serve: wrongAdapter("Method").serve, Connect: connectHTTP}.run(t, []scenario{asks}, inProcess)
			},
			`GET "/shop/list" of host "a.test" with map["X-Hop":["one"]]` + "\n" +
				`          the view returned method "get", path "/shop/list", route "/shop/list" and address 127.0.0.1; ` +
				`"shop" counted "header:host:` + core.Digest("a.test") + `": allowed` + "\n          status 200",
		},
	}
	for wrong, want := range contractHangs {
		suite := suites[wrong]
		suite.run, suite.want = func(t *testing.T) { t.Error(contractOf(t, wrong)) }, want
		suites[wrong] = suite
	}
	if name := os.Getenv(variable); name != "" {
		patience = 10 * time.Second // which most of these suites wait for in vain
		suites[name].run(t)
		return
	}
	t.Parallel()
	for name, suite := range suites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			process := exec.Command(os.Args[0], "-test.run=^TestRunEnds$", "-test.v", "-test.timeout=5m")
			process.Env = append(os.Environ(), variable+"="+name)
			out, err := process.CombinedOutput()
			if err == nil || !strings.Contains(string(out), suite.want) || strings.Contains(string(out), "allowed_until") {
				t.Errorf("%v, and the output is\n%s\nwant %q", err, out, suite.want)
			}
		})
	}
}

// TestFoldedHeaders sends folded headers to a server that answers 400 to them. The tricks must
// expect the 400 if Cannot names FoldedHeaders, and fail otherwise.
func TestFoldedHeaders(t *testing.T) {
	t.Parallel()
	run := func(t testing.TB, cannot map[Feature]string) {
		s := &site{adapter: Adapter{Serve: wrongAdapter("folded headers").serve, Cannot: cannot}, network: "tcp"}
		s.hops(t, "X-Forwarded-For", lineTricks)
	}
	run(t, map[Feature]string{FoldedHeaders: "a test of those who refuse them"})
	if complaints := complaintsOf(t, func(t testing.TB) { run(t, nil) }); len(complaints) != 5 {
		t.Errorf("without Cannot the complaints are %q, want one for each folded header", complaints)
	}
}

// observed is a test that only records its failures.
type observed struct {
	testing.TB
	mu         sync.Mutex
	complaints []string
	cleanups   []func()
}

func (o *observed) Errorf(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.complaints = append(o.complaints, fmt.Sprintf(format, args...))
}

func (o *observed) Fatalf(format string, args ...any) {
	o.Errorf(format, args...)
	runtime.Goexit()
}

func (o *observed) Fatal(args ...any) { o.Fatalf("%s", fmt.Sprint(args...)) }
func (o *observed) Cleanup(f func())  { o.cleanups = append(o.cleanups, f) }

// complaintsOf runs a test and its cleanups, and returns its complaints.
func complaintsOf(t testing.TB, test func(testing.TB)) []string {
	o := &observed{TB: t}
	var run sync.WaitGroup
	run.Go(func() {
		defer func() {
			for _, cleanUp := range slices.Backward(o.cleanups) {
				cleanUp()
			}
		}()
		test(o)
	})
	run.Wait()
	return o.complaints
}
