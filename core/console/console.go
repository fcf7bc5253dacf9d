// Package console is the operator's page: one http.Handler that shows what a limiter does, and lets
// operators act on it. A service mounts it under any path, in any framework:
//
//	page, err := console.New(limiter, console.Options{Authorize: authorize})
//	defer page.Close()
//	mux.Handle("/limits/", page)
//
// There is no page without an authorizer. Viewers see, and operators act too: they ban and unban
// subjects, reset their counters and set overrides, each with a note. Everything goes through the
// public methods of core and operate, so every act is in the audit, even if it was forbidden or
// failed.
//
// The pages are made on the server, need no script, and load nothing from another host. With
// script, the first page is live. Its figures are those of this process; the lists of offenders,
// bans and acts are those of all processes that share the Redis and its prefix.
//
// # The JSON API
//
// Each page has a form in JSON under api/, such as api/offenders, with the same parameters and the
// same rights. Acts are POSTs of a JSON object, such as api/ban:
//
//	{"rule": "api", "subject": "user:alice", "for": "1h", "note": "ticket 17"}
//
// A subject is shown as its [operate.SubjectText]: unchanged, or as a Go string literal such as
// "\x00\xff" if it is not printable or would be read as another subject. Everywhere, that text and
// all others that [operate.Operator.Subject] reads stand for the same subject.
package console

import (
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/panics"
	"github.com/accesslimit/accesslimit/core/operate"
)

// Role is what somebody may do on the page. The zero Role may not even see it.
type Role int

// The roles.
const (
	// Viewer sees everything, except the subjects if Options.RedactSubjects is set.
	Viewer Role = iota + 1
	// Operator sees everything, and acts unless Options.ReadOnly is set.
	Operator
)

// String returns "viewer" or "operator", and "nobody" for any other Role.
func (r Role) String() string {
	switch r {
	case Viewer:
		return "viewer"
	case Operator:
		return "operator"
	default:
		return "nobody"
	}
}

// Identity is somebody who may use the page.
type Identity struct {
	// Name appears in the audit as the author of acts. It should name a person, not a team. An
	// Operator without a Name cannot act.
	Name string
	Role Role
}

// Options configure a [Handler]. Only Authorize is required.
type Options struct {
	// Authorize returns who makes a request, by a session, a token in a header, or a client
	// certificate. It returns the zero Identity for strangers, who get 401 if Challenge is set, and
	// otherwise 403. With an error, the request gets 503. It returns an Identity, and not only a
	// Role, because the audit names the author of each act.
	//
	// An address with 30 such strangers' requests in a minute is refused with 429, before Authorize
	// is called. While 30 requests wait for Authorize, further ones wait for them. Requests without
	// a cookie, a client certificate or any header that could be a credential are counted
	// separately: beyond 30, they get a stranger's answer without a call of Authorize. So another
	// site cannot lock out its own visitors. Danger: a token in the URL ends up in logs. Requests
	// with a parameter named token or access_token are refused.
	Authorize func(*http.Request) (Identity, error)
	// Challenge is the WWW-Authenticate header for strangers, such as `Basic realm="limits"`, which
	// makes browsers ask for a name and a password. By default there is none.
	Challenge string
	// ReadOnly turns off all acts, even for operators.
	ReadOnly bool
	// RedactSubjects shows viewers a short digest in place of each subject, because subjects are
	// personal data. The digests differ between processes and after a restart. Notes are shown
	// unchanged. Danger: a viewer who guesses a subject can look it up, and compare its digest with
	// those in the lists. A short API key that ByHeader counts can thus be guessed.
	RedactSubjects bool
	// Title is the title of the page: "Access limits" by default.
	Title string
	// ClientIP says how the address of a caller of the page is found, as in core.Options. By
	// default it is the connection's peer. Danger: behind a proxy that is not named here, all
	// callers share one address, so a stranger can lock out everybody for a minute. In fiber, the
	// proxy must delete the header that callers send (see examples/PROXIES.md), or they choose the
	// address that is counted.
	ClientIP core.ClientIP
	// Logger receives a line for each stranger, each forbidden act, and each failure to make a
	// page. The default is slog.Default().
	Logger *slog.Logger
}

// Handler is the operator's page. Make one with [New]. It is safe for concurrent use.
//
// All links are relative, so it works under any path, whether or not http.StripPrefix removes it. A
// request without the slash at the end is redirected. The last word of the path must not be "api".
type Handler struct {
	limiter    *core.Limiter
	operator   *operate.Operator
	options    Options
	strangers  *strangers    // the limit on requests that are not authorized
	bare       *strangers    // the same for requests without any credential
	forbidden  core.Counter  // bounds the audit's entries about forbidden acts
	own        *core.Limiter // of these
	inRedis    bool          // whether the limiter has Redis
	probed     probed
	redactKey  []byte      // of digests
	seal       cipher.AEAD // of texts that a viewer may send back but not read
	figures    *figures
	streams    streams
	streamLife time.Duration
	closed     chan struct{}
	close      func()
}

// New returns the page of a limiter. Close ends what it does in the background: every two seconds
// it reads the limiter's Stats.
func New(limiter *core.Limiter, o Options) (*Handler, error) {
	switch {
	case limiter == nil:
		return nil, errors.New("console: the limiter is nil: check the error of core.New")
	case o.Authorize == nil:
		return nil, errors.New("console: Options.Authorize must be set: it says who may see the page, and who may act")
	}
	if o.Title == "" {
		o.Title = "Access limits"
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	h := &Handler{
		limiter: limiter, operator: operate.New(limiter), options: o, inRedis: len(limiter.Stats().StoreTime.Bounds) > 0, redactKey: random(32), seal: newSeal(random(32)),
		figures: newFigures(limiter), streamLife: streamLife, closed: make(chan struct{}),
	}
	if err := h.limitStrangers(); err != nil {
		return nil, err
	}
	sampling := make(chan struct{})
	go panics.Guard(func() {
		defer close(sampling)
		h.figures.follow(h.closed, h.panicked)
	}, h.panicked)()
	h.close = sync.OnceFunc(func() {
		close(h.closed)
		<-sampling
		h.own.Close()
	})
	return h, nil
}

// panicked logs a panic that was caught.
func (h *Handler) panicked(err error) {
	h.options.Logger.Error("accesslimit: console: a panic was caught", slog.Any("error", err), slog.String("stack", panics.StackOf(err)))
}

// Close ends the streams of events, and what the page does in the background. The limiter stays
// open. Close may be called more than once.
func (h *Handler) Close() { h.close() }

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}
