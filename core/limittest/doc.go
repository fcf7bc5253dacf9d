// Package limittest helps to test a service that limits access, and holds adapters to what they
// must do. It is for tests: neither core nor an adapter imports it.
//
// # Testing your service
//
// A test passes the service a limiter of its own:
//
//	var replyRule = core.Rule{Name: "reply", Seconds: 60, MaxCount: 5, OnStoreError: core.FailClosed}
//
//	func newService(limiter *core.Limiter) http.Handler {
//		router := gin.New()
//		router.Use(ginlimit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 100}))
//		router.POST("/reply", ginlimit.New(limiter, replyRule), func(c *gin.Context) { c.String(200, "replied") })
//		return router
//	}
//
//	func newLimiter(t *testing.T, options core.Options) *core.Limiter {
//		limiter, err := core.New(options)
//		if err != nil {
//			t.Fatal(err)
//		}
//		t.Cleanup(limiter.Close)
//		return limiter
//	}
//
//	func post(service http.Handler) *httptest.ResponseRecorder {
//		w := httptest.NewRecorder()
//		service.ServeHTTP(w, httptest.NewRequest("POST", "/reply", nil)) // comes from 192.0.2.1
//		return w
//	}
//
// Time. Without Options.Redis a limiter counts in this process, and goes by the clock of a
// testing/synctest bubble. There time passes only when the test sleeps, at once and exactly. The
// limiter must be closed before the bubble ends; t.Cleanup is early enough.
//
//	func TestReplyAgain(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			service := newService(newLimiter(t, core.Options{}))
//			for range 5 {
//				if w := post(service); w.Code != http.StatusOK {
//					t.Fatalf("status %d", w.Code)
//				}
//			}
//			refused := post(service)
//			wait, err := strconv.Atoi(refused.Header().Get("Retry-After"))
//			if refused.Code != http.StatusTooManyRequests || err != nil {
//				t.Fatalf("status %d, %v", refused.Code, err)
//			}
//			time.Sleep(time.Duration(wait) * time.Second)
//			if w := post(service); w.Code != http.StatusOK {
//				t.Errorf("status %d after Retry-After", w.Code)
//			}
//		})
//	}
//
// Refusals. [UseUp] takes what a subject has left, so the next call is refused:
//
//	func TestReplyTooOften(t *testing.T) {
//		limiter := newLimiter(t, core.Options{})
//		limittest.UseUp(t, limiter, replyRule, "ip:192.0.2.1")
//		if w := post(newService(limiter)); w.Code != http.StatusTooManyRequests {
//			t.Errorf("status %d", w.Code)
//		}
//	}
//
// A store that fails. [StartRedis] starts a real redis-server, which a test can stop, kill and
// restart. Where none is installed, [NoRedis] returns a client that fails from the beginning.
//
//	func TestReplyWithoutRedis(t *testing.T) {
//		server := limittest.StartRedis(t)
//		service := newService(newLimiter(t, core.Options{Redis: server.Client(t)}))
//		if w := post(service); w.Code != http.StatusOK {
//			t.Fatalf("status %d", w.Code)
//		}
//		server.Kill()
//		if w := post(service); w.Code != http.StatusServiceUnavailable {
//			t.Errorf("status %d while Redis is down", w.Code)
//		}
//	}
//
// The rules of a route. An answer names them in its RateLimit-Policy header, the outermost first:
//
//	func TestRulesOfReply(t *testing.T) {
//		w := post(newService(newLimiter(t, core.Options{})))
//		policies := strings.Join(w.Header().Values("RateLimit-Policy"), ", ")
//		if want := `"api";q=100;w=1, "reply";q=5;w=60`; policies != want {
//			t.Errorf("the rules are %s, want %s", policies, want)
//		}
//	}
//
// The rules that a [core.Guard] or a [core.Check] was made of are returned by its Rules method:
//
//	func TestRulesOfCheck(t *testing.T) {
//		limiter := newLimiter(t, core.Options{})
//		login := limiter.MustCheck(core.Rule{Name: "login", Seconds: 600, MaxCount: 10})
//		for _, rule := range login.Rules() {
//			limittest.UseUp(t, limiter, rule, "account:carol")
//		}
//	}
//
// # Testing an adapter
//
// An adapter shows the core a [core.View] of each call and carries out its [core.Answer]. The
// example of this package is one for a made-up framework, in about eighty lines. Its test serves an
// [App] with the framework, through the adapter, and calls [Run]:
//
//	func TestToy(t *testing.T) { limittest.Run(t, limittest.Adapter{Serve: serve}) }
//
// Run first makes one call for each part of the contract. If one fails, it says which method of the
// View returned what and what it should have returned, and ends. Then it holds the adapter to about
// a hundred scenarios, in process and with a real Redis. Every wait is bounded.
//
// [Adapter].Cannot names what a framework cannot do, each [Feature] with the reason. [RunPaths] and
// [FuzzPaths] are for other configurations of its router.
package limittest
