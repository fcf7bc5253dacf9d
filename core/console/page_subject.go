package console

import (
	"slices"

	"github.com/accesslimit/accesslimit/core/operate"
)

// subjectPage is what the page about one subject shows.
type subjectPage struct {
	Subject  string       `json:"subject"` // as somebody may see it
	Typed    string       `json:"-"`       // as it can be typed
	Rules    choice       `json:"-"`       // the rules that acts can name
	Counting choice       `json:"-"`       // those of rules that count such subjects
	Counted  *explanation `json:"counted,omitempty"`
	// Bans say who imposed the enforced bans and why, by the names of their rules.
	Bans    map[string]*banLine `json:"bans,omitempty"`
	Hint    string              `json:"hint,omitempty"` // about the subject, if it is probably misspelled
	Next    string              `json:"next,omitempty"` // the parameter after of the page of further rules
	After   string              `json:"-"`              // the same parameter of this page
	Problem string              `json:"problem,omitempty"`
}

func (h *Handler) loadSubject(q *query) (any, error) {
	subject, err := h.operator.Subject(q.get("subject"))
	if err != nil {
		return nil, err
	}
	after, err := parse(q.get("after"))
	if err != nil {
		return nil, err
	}
	shown := &subjectPage{
		After: q.get("after"),
		Rules: h.ruleNames(),
	}
	if subject == "" {
		return shown, nil
	}
	shown.Counting = h.attachedNames(func(r *operate.AttachedRule, name string) bool { return h.operator.Counts(r, name, subject) })
	shown.Subject, shown.Typed = h.subject(q.who, subject), operate.SubjectText(subject)
	counted, next, err := h.operator.InspectPart(q.ctx, subject, after, mostCommands)
	if isWrong(err) {
		return nil, err
	}
	shown.Counted, shown.Problem, shown.Next = h.explained(q.who, counted), problem(err), shownName(next)
	if err == nil && after+next == "" && !slices.ContainsFunc(counted.Rules, func(r operate.ExplainedRule) bool { return !isUnused(&r) }) {
		shown.Hint = h.operator.SubjectHint(subject)
	}
	if err == nil {
		shown.Bans = h.addBans(q.ctx, q.who, counted, shown.Counted)
	}
	return shown, nil
}

// choice holds the names of rules to choose from, as the page shows them.
type choice []string

// With returns the names, and adds one that may be missing.
func (c choice) With(name string) choice {
	if name == "" || slices.Contains(c, name) {
		return c
	}
	return append(choice{name}, c...)
}

// Only returns the name if there is no other to choose.
func (c choice) Only() string {
	if len(c) == 1 {
		return c[0]
	}
	return ""
}

// ruleNames returns the names of the attached rules, and of all handles that have decided a call.
func (h *Handler) ruleNames() choice {
	names := h.attachedNames(anyRule)
	for _, d := range h.limiter.Stats().Decisions {
		names = append(names, show(d.Rule))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// attached returns the rules in force.
func (h *Handler) attached() []operate.AttachedRule {
	rules, _, _ := h.operator.Rules() // New has checked the Limiter
	return rules
}

func anyRule(*operate.AttachedRule, string) bool { return true }

// attachedNames returns those names of attached rules that are wanted.
func (h *Handler) attachedNames(wanted func(r *operate.AttachedRule, name string) bool) choice {
	names := choice{}
	rules := h.attached()
	for i := range rules {
		for _, name := range rules[i].Names {
			if wanted(&rules[i], name) {
				names = append(names, show(name))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
