package console

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/accesslimit/accesslimit/core"
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
		ClientIP: h.options.ClientIP, Headers: core.NoHeaders, MaxKeys: 10_000, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	h.forbidden = h.own.MustCounter("forbidden", core.PerHour(maxForbidden))
	h.strangers, h.sent = h.strangersGuard("strangers"), h.strangersGuard("sent strangers")
	return nil
}

func (h *Handler) strangersGuard(name string) *core.Guard {
	return h.own.MustGuard(core.Rule{
		Name: name, Limit: core.PerMinute(maxStrangers),
		Count:   func(status int) bool { return status != http.StatusOK },
		Message: "Too many requests without authorization. Try again in a minute.",
	})
}

// authorize returns the person who makes a request. For strangers, and for addresses with too many
// requests by strangers, it writes the reply and returns false.
func (h *Handler) authorize(w http.ResponseWriter, r *http.Request) (who Identity, ok bool) {
	guard := h.strangers
	if isSent(r) {
		guard = h.sent
	}
	answer := guard.Check(&view{r, w.Header()})
	if refusal := answer.Refusal; refusal != nil {
		refusal.SetHeader(w.Header())
		h.fail(w, r, refusal.Status, refusal.Message)
		return Identity{}, false
	}
	var err error
	answer.Run(func() (status int) {
		who, err = h.options.Authorize(r)
		if err == nil && !who.Role.sees() {
			return http.StatusForbidden
		}
		return http.StatusOK
	})
	switch {
	case err != nil:
		h.log(r, slog.LevelError, "Authorize failed", slog.Any("error", err))
		h.fail(w, r, http.StatusServiceUnavailable, "Your rights could not be checked. Try again shortly.")
	case who.Role.sees():
		return who, true
	case h.options.Challenge != "":
		h.log(r, slog.LevelWarn, "a request was not authorized")
		w.Header().Set("WWW-Authenticate", h.options.Challenge)
		h.fail(w, r, http.StatusUnauthorized, "Log in to see this page.")
	default:
		h.log(r, slog.LevelWarn, "a request was not authorized")
		h.fail(w, r, http.StatusForbidden, "You may not see this page.")
	}
	return Identity{}, false
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
	more = append(more, slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.String("peer", r.RemoteAddr))
	h.options.Logger.LogAttrs(r.Context(), level, "accesslimit: console: "+text, more...)
}
