package console

import (
	"slices"
)

// subjectPage is what the page about one subject shows.
type subjectPage struct {
	Subject string       `json:"subject"` // as somebody may see it
	Typed   string       `json:"-"`       // as it can be typed
	Rules   []string     `json:"-"`       // the names that acts may be about
	Counted *explanation `json:"counted,omitempty"`
	Problem string       `json:"problem,omitempty"`
}

func (h *Handler) loadSubject(q *query) (any, error) {
	subject, err := h.parseSubject(q.get("subject"))
	if err != nil {
		return nil, err
	}
	shown := &subjectPage{Rules: h.ruleNames()}
	if subject == "" {
		return shown, nil
	}
	shown.Subject, shown.Typed = h.subject(q.who, subject), show(subject)
	counted, err := h.limiter.Inspect(q.ctx, subject)
	if isWrong(err) {
		return nil, err
	}
	shown.Counted, shown.Problem = h.explained(q.who, counted), problem(err)
	if err == nil {
		h.addBans(q.ctx, q.who, counted, shown.Counted)
	}
	return shown, nil
}

// ruleNames returns the names of the attached rules, and of all handles that have decided a call.
func (h *Handler) ruleNames() []string {
	names := []string{}
	for _, d := range h.limiter.Stats().Decisions {
		names = append(names, show(d.Rule))
	}
	rules, _ := h.limiter.Rules()
	for _, rule := range rules {
		for _, name := range rule.Names {
			names = append(names, show(name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
