package console

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

const (
	// maxStrangers bounds the requests of strangers from one address in a minute, so that nobody
	// can try many tokens.
	maxStrangers = 30
	// maxForbidden bounds the entries about forbidden acts of one person in an hour, so that nobody
	// can push everything else out of the 10,000 entries of the audit within days.
	maxForbidden = 30
)

// limitStrangers makes the handler's own limits. They count in this process.
func (h *Handler) limitStrangers() (err error) {
	h.own, err = core.New(core.Options{
		ClientIP: h.options.ClientIP, Headers: core.NoHeaders, Expose: true, MaxKeys: 10_000,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	h.forbidden = h.own.MustCounter("forbidden", core.PerHour(maxForbidden))
	h.strangers, h.bare = newStrangers(h.own, "strangers"), newStrangers(h.own, "bare strangers")
	return nil
}

// authorize returns the person who makes a request. For strangers, and for addresses with too many
// requests by strangers, it writes the reply and returns false.
//
// Requests without a credential are counted apart, because any site can make a browser send them.
// Beyond the limit, they get a stranger's answer instead of a refusal, because a browser that is
// about to ask for a password sends such a request first.
func (h *Handler) authorize(w http.ResponseWriter, r *http.Request) (who Identity, ok bool) {
	limit, bare := h.strangers, h.isBare(r)
	if bare {
		limit = h.bare
	}
	var err error
	refusal := limit.run(&view{r, w.Header()}, left(r), h.closed, func() (status int) {
		who, err = h.options.Authorize(r)
		if err == nil && !who.Role.sees() {
			return http.StatusForbidden
		}
		return http.StatusOK
	})
	switch {
	case refusal != nil && bare:
		h.turnAway(w, r)
	case refusal != nil:
		refusal.SetHeader(w.Header())
		h.fail(w, r, refusal.Status, refusal.Message)
	case err != nil:
		h.log(r, slog.LevelError, "Authorize failed", slog.Any("error", err))
		h.fail(w, r, http.StatusServiceUnavailable, "Your rights could not be checked. Try again shortly.")
	case who.Role.sees():
		return who, true
	default:
		h.log(r, slog.LevelWarn, "a request was not authorized")
		h.turnAway(w, r)
	}
	return Identity{}, false
}

// turnAway refuses a stranger.
func (h *Handler) turnAway(w http.ResponseWriter, r *http.Request) {
	if h.options.Challenge == "" {
		h.fail(w, r, http.StatusForbidden, "You may not see this page.")
		return
	}
	w.Header().Set("WWW-Authenticate", h.options.Challenge)
	h.fail(w, r, http.StatusUnauthorized, "Log in to see this page.")
}

func (r Role) sees() bool { return r == Viewer || r == Operator }

// acts reports whether somebody may act.
func (h *Handler) acts(who Identity) bool {
	return who.Role == Operator && who.isNamed() && !h.options.ReadOnly
}

// isNamed reports whether the audit can name somebody.
func (who Identity) isNamed() bool { return strings.TrimSpace(who.Name) != "" }

// redacts reports whether somebody sees digests in place of subjects.
func (h *Handler) redacts(who Identity) bool { return h.options.RedactSubjects && who.Role != Operator }

func (h *Handler) log(r *http.Request, level slog.Level, text string, more ...slog.Attr) {
	more = append(more, slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.String("client", h.clientOf(r)))
	h.options.Logger.LogAttrs(r.Context(), level, "accesslimit: console: "+text, more...)
}

// clientOf returns the address of the caller, as Options.ClientIP finds it.
func (h *Handler) clientOf(r *http.Request) string {
	x, _ := operate.New(h.own).ExplainView(&view{r: r})
	return x.ClientIP
}
