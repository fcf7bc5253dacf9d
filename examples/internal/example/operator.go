package example

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// operator answers the questions of whoever has OPERATOR_TOKEN. r.FormValue reads a parameter of
// the URL or of the body.
type operator struct {
	*operate.Operator
	limiter *core.Limiter
}

// Operator returns the handler of all routes under /operator/. It finds none if OPERATOR_TOKEN is
// not set.
func Operator(limiter *core.Limiter) http.Handler {
	o, mux, token := operator{operate.New(limiter), limiter}, http.NewServeMux(), os.Getenv("OPERATOR_TOKEN")
	if token == "" {
		return mux
	}
	mux.HandleFunc("GET /operator/top", shown(o.top))
	mux.HandleFunc("GET /operator/why", shown(o.why))
	mux.HandleFunc("GET /operator/subject", shown(o.subject))
	mux.HandleFunc("GET /operator/explain", shown(o.explain))
	mux.HandleFunc("GET /operator/refused", shown(o.refused))
	mux.HandleFunc("GET /operator/bans", shown(o.bans))
	mux.HandleFunc("GET /operator/audit", shown(o.audit))
	mux.HandleFunc("POST /operator/ban", shown(o.ban))
	mux.HandleFunc("POST /operator/unban", shown(o.unban))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+token)) == 0 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "this needs the operator's token", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// shown returns a handler that shows an answer as text. An explanation that lacks what Redis knows
// is shown too.
func shown(answer func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := answer(r)
		var wrong *core.RuleError
		switch {
		case errors.As(err, &wrong):
			http.Error(w, err.Error(), http.StatusBadRequest)
		case err != nil:
			http.Error(w, fmt.Sprintf("%v\n\n%v", err, text), http.StatusServiceUnavailable)
		default:
			fmt.Fprintln(w, text)
		}
	}
}

// top returns the subjects that were refused most, and those nearest to their limits.
func (o operator) top(r *http.Request) (any, error) {
	span, _ := time.ParseDuration(cmp.Or(r.FormValue("span"), "10m")) // Top refuses any other than 1m, 10m and 1h
	return o.Top(r.Context(), r.FormValue("rule"), span)
}

// why returns what the reference of a refusal says.
func (o operator) why(r *http.Request) (any, error) {
	return o.ExplainReference(r.FormValue("reference"))
}

// subject returns what a subject has used of all limits.
func (o operator) subject(r *http.Request) (any, error) {
	return operate.New(o.limiter).Inspect(r.Context(), o.subjectOf(r))
}

// explain returns how a call would be decided, and so which limits are in force for it.
func (o operator) explain(r *http.Request) (any, error) {
	return operate.New(o.limiter).Explain(r.Context(), operate.Call{
		Method: cmp.Or(r.FormValue("method"), http.MethodGet), Path: r.FormValue("path"), Route: r.FormValue("route"),
		RemoteAddr: cmp.Or(r.FormValue("address"), r.RemoteAddr), User: r.FormValue("user"),
	})
}

// refused returns how many calls this process has decided, by rule, reason and source. Metrics
// show those of all processes.
func (o operator) refused(*http.Request) (any, error) {
	var text strings.Builder
	for _, d := range o.limiter.Stats().Decisions {
		fmt.Fprintf(&text, "%8d  %-15s  %-10s  %s\n", d.Count, d.Reason, d.Source, d.Rule)
	}
	return text.String(), nil
}

// bans returns the bans of a rule.
func (o operator) bans(r *http.Request) (any, error) {
	bans, next, err := o.Bans(r.Context(), r.FormValue("rule"), r.FormValue("after"), 100)
	var text strings.Builder
	for _, ban := range bans {
		fmt.Fprintln(&text, ban)
	}
	if next != "" {
		fmt.Fprintf(&text, "more: after=%s\n", url.QueryEscape(next)) // callers may choose its bytes
	}
	return text.String(), err
}

// audit returns the latest acts of operators.
func (o operator) audit(r *http.Request) (any, error) {
	acts, err := o.Audit(r.Context(), "", 100)
	var text strings.Builder
	for _, a := range acts {
		fmt.Fprintf(&text, "%s  %s  %q  %q  by %q: %q  %s\n", a.Time.Format(time.RFC3339), a.Act, a.Rule, a.Subject, a.Author, a.Note, a.After)
	}
	return text.String(), err
}

// ban bans a subject.
func (o operator) ban(r *http.Request) (any, error) {
	span, _ := time.ParseDuration(r.FormValue("span")) // Ban refuses 0
	changed, err := o.Ban(acting(r), r.FormValue("rule"), o.subjectOf(r), span)
	return fmt.Sprintf("banned: %v", changed), err
}

// unban ends the ban of a subject.
func (o operator) unban(r *http.Request) (any, error) {
	changed, err := o.Unban(acting(r), r.FormValue("rule"), o.subjectOf(r))
	return fmt.Sprintf("unbanned: %v", changed), err
}

// acting returns a context that names who acts, for the audit.
func acting(r *http.Request) context.Context {
	return operate.WithActor(r.Context(), "operator", r.FormValue("note"))
}

// subjectOf returns the subject that an operator means: that of an address, or the text itself.
func (o operator) subjectOf(r *http.Request) string {
	text := r.FormValue("subject")
	if addr, err := netip.ParseAddr(text); err == nil {
		return o.limiter.IPSubject(addr)
	}
	return text
}
