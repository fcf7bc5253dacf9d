package console

import (
	"slices"
)

// subjectPage is what the page about one subject shows.
type subjectPage struct {
	Subject string   `json:"subject"` // as somebody may see it
	Typed   string   `json:"-"`       // as it can be typed
	Rules   []string `json:"rules"`   // the names that acts may be about
	Problem string   `json:"problem,omitempty"`
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
	return shown, nil
}

// ruleNames returns the names of all rules and handles that have decided a call.
func (h *Handler) ruleNames() []string {
	names := []string{}
	for _, d := range h.limiter.Stats().Decisions {
		names = append(names, show(d.Rule))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
