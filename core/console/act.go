package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// act is something that operators can do to a subject.
type act struct {
	name   string   // as in operate.AuditEntry
	fields []string // its fields besides commonFields
	do     func(ctx context.Context, operator *operate.Operator, a *action) (changed bool, err error)
}

// acts are the acts by the last words of their paths.
var acts = map[string]act{
	"ban": {"ban", []string{"for"}, func(ctx context.Context, operator *operate.Operator, a *action) (changed bool, err error) {
		span, err := a.span("for")
		if err != nil {
			return false, err
		}
		return operator.Ban(ctx, a.rule, a.subject, span)
	}},
	"unban": {"unban", nil, func(ctx context.Context, operator *operate.Operator, a *action) (changed bool, err error) {
		return operator.Unban(ctx, a.rule, a.subject)
	}},
	"reset": {"reset", nil, func(ctx context.Context, operator *operate.Operator, a *action) (changed bool, err error) {
		return operator.Reset(ctx, a.rule, a.subject)
	}},
	"override":        {"override", []string{"kind", "limits", "for"}, setOverride},
	"remove-override": {"override removed", nil, removeOverride},
}

// notices are the messages that the page shows after an act.
var notices = map[string]string{
	"ban":              "The subject is banned.",
	"unknown-ban":      "The ban is set. " + unknownRule,
	"unban":            "The ban has ended.",
	"reset":            "The counters start afresh.",
	"override":         "The override is set.",
	"unknown-override": "The override is set. " + unknownRule,
	"remove-override":  "The override is removed.",
	"nothing":          "Nothing changed.",
}

func setOverride(ctx context.Context, operator *operate.Operator, a *action) (changed bool, err error) {
	overrides, err := operator.Overrides(a.rule)
	if err != nil {
		return false, err
	}
	override, err := a.override(time.Now())
	if err != nil {
		return false, err
	}
	err = overrides.Set(ctx, a.subject, override)
	return err == nil, err
}

func removeOverride(ctx context.Context, operator *operate.Operator, a *action) (changed bool, err error) {
	overrides, err := operator.Overrides(a.rule)
	if err != nil {
		return false, err
	}
	return overrides.Remove(ctx, a.subject)
}

// act carries out an act, or replies why it does not. Both are in the audit.
func (h *Handler) act(w http.ResponseWriter, r *http.Request, where location, who Identity, act act) {
	if !sameOrigin(r, where.api) { // another site must not write into the audit under the person's name
		h.log(r, slog.LevelWarn, "an act did not come from the page", slog.String("act", act.name), slog.String("author", who.Name))
		h.refuse(w, r, who, http.StatusForbidden, notFromPage, "")
		return
	}
	a, status, err := h.read(w, r, where.api, act)
	if err != nil {
		h.refuse(w, r, who, status, sentence(err), "")
		return
	}
	ctx := operate.WithActor(steady(r), who.Name, a.note)
	back := "subject?subject=" + url.QueryEscape(operate.SubjectText(a.subject))
	if why := h.forbids(r, where.api, who, a); why != "" {
		if d, err := h.forbidden.Allow(ctx, "name:"+who.Name); err == nil && d.Allowed {
			h.record(ctx, act, a, why)
		}
		h.log(r, slog.LevelWarn, "an act was forbidden", slog.String("act", act.name), slog.String("author", who.Name), slog.String("why", why))
		h.refuse(w, r, who, http.StatusForbidden, why, back)
		return
	}
	changed, err := h.try(ctx, act, a)
	switch {
	case err != nil:
		h.refuse(w, r, who, statusOf(err), problem(err), back)
	case where.api:
		h.sendJSON(w, r, http.StatusOK, done{act.name, show(a.rule), operate.SubjectText(a.subject), changed, h.hintAfter(where, a)})
	default:
		done := where.name
		switch {
		case !changed:
			done = "nothing"
		case h.isUnknown(where, a):
			done = "unknown-" + done
		}
		w.Header().Set("Location", back+"&done="+done)
		w.WriteHeader(http.StatusSeeOther)
	}
}

// done is the reply to an act in JSON.
type done struct {
	Act     string `json:"act"`
	Rule    string `json:"rule"`
	Subject string `json:"subject"`
	Changed bool   `json:"changed"`
	Hint    string `json:"hint,omitempty"` // a hint if the subject or the rule is probably misspelled
}

// forbids returns why somebody may not act, or "". A form needs the token. The API needs none: a
// browser lets another site send JSON only if the page allows it, and the page never does.
func (h *Handler) forbids(r *http.Request, api bool, who Identity, a *action) (why string) {
	switch {
	case !api && !hasToken(r, a.fields.Get(tokenField)):
		return "The form is out of date: open the page again."
	case h.options.ReadOnly:
		return "This page is read-only."
	case who.Role != Operator:
		return "Only operators may act."
	case !who.isNamed():
		return "Only operators with a name may act, because the audit shows it: log in with one."
	default:
		return ""
	}
}

// try carries out an act that is not forbidden. core audits acts that changed something or may
// have; try audits all others.
func (h *Handler) try(ctx context.Context, act act, a *action) (changed bool, err error) {
	if a.note == "" {
		err = errors.New("the note must say why, because the audit shows it")
	} else if nobody := h.meetsNobody(act, a); nobody != "" {
		err = errors.New(nobody)
	} else {
		changed, err = act.do(ctx, h.operator, a)
	}
	store := new(core.StoreError)
	switch {
	case err == nil && !changed:
		h.record(ctx, act, a, "nothing to change")
	case errors.As(err, &store) && store.Class.MayHaveCharged():
	case err != nil:
		h.record(ctx, act, a, err.Error())
	}
	return changed, err
}

// record writes an act that was not carried out into the audit.
func (h *Handler) record(ctx context.Context, act act, a *action, why string) {
	h.operator.RecordAttempt(ctx, operate.AuditEntry{Act: act.name, Rule: a.rule, Subject: a.subject, After: "not done: " + why})
}

// refuse replies why an act was not carried out.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, who Identity, status int, why, back string) {
	if place(r.URL.Path).api {
		h.fail(w, r, status, why)
		return
	}
	h.sendPage(w, r, status, who, page{name: "problem", title: "Not done"}, notDone{why, back}, "")
}

// notDone is what the page about a failed request shows.
type notDone struct{ Why, Back string }

// statusOf returns the status of an act that failed.
func statusOf(err error) int {
	switch {
	case errors.Is(err, core.ErrStore), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	default:
		return http.StatusBadRequest
	}
}

// isWrong reports whether an error says that an argument is wrong.
func isWrong(err error) bool {
	wrong := new(core.RuleError)
	return errors.As(err, &wrong)
}
