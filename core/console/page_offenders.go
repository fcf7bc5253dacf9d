package console

import (
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// offendersPage is what the page of the most refused subjects shows.
type offendersPage struct {
	Rule    string     `json:"rule"` // "" for all
	Span    string     `json:"span"`
	Spans   []string   `json:"-"`
	Rules   choice     `json:"-"` // to choose from
	Since   time.Time  `json:"since,omitzero"`
	Refused []offender `json:"refused"`
	Would   []offender `json:"would_refuse"` // by rules that refuse nobody
	Full    bool       `json:"full"`         // a rule's own list may have more than the list of all rules
	Near    []offender `json:"near_limit"`
	Hint    string     `json:"hint,omitempty"` // about the rule, if it is probably misspelled
	Problem string     `json:"problem,omitempty"`
}

// offender is a subject in one of the lists.
type offender struct {
	Rule    string  `json:"rule"`
	Subject string  `json:"subject"`
	Link    bool    `json:"-"` // the subject can be opened
	Refused int64   `json:"refused,omitempty"`
	Used    float64 `json:"used,omitempty"` // the share of the limit
	// Mode is the mode of this process's rules with the name.
	Mode core.Mode `json:"mode,omitempty"`
}

// Percent returns the share in use.
func (o offender) Percent() string { return fmt.Sprintf("%d %%", int(100*o.Used+1e-9)) }

// The spans that a list may be about, and their names.
var (
	spanNames = []string{"1m", "10m", "1h"}
	spans     = map[string]time.Duration{"1m": time.Minute, "10m": 10 * time.Minute, "1h": time.Hour}
)

func (h *Handler) loadOffenders(q *query) (any, error) {
	shown := &offendersPage{Span: q.get("span"), Spans: spanNames, Rules: h.ruleNames(), Refused: []offender{}, Would: []offender{}, Near: []offender{}}
	if shown.Span == "" {
		shown.Span = "10m"
	}
	span, ok := spans[shown.Span]
	if !ok {
		return nil, fmt.Errorf("span = %q: must be 1m, 10m or 1h", shown.Span)
	}
	rule, err := parse(q.get("rule"))
	if err != nil {
		return nil, err
	}
	top, err := h.operator.Top(q.ctx, rule, span)
	if rule != "" {
		shown.Rule = show(rule)
		shown.Hint = hintIfMissing(shown.Rules, shown.Rule, unknownRule)
	}
	modes := h.modes()
	shown.Since, shown.Problem = top.Since, problem(err)
	shown.Full = rule == "" && len(top.Refused) == pageSize
	for _, e := range top.Refused {
		if o := h.offender(q.who, e, modes); o.Mode != core.Enforce {
			shown.Would = append(shown.Would, o)
		} else {
			shown.Refused = append(shown.Refused, o)
		}
	}
	for _, e := range top.Near {
		shown.Near = append(shown.Near, h.offender(q.who, e, modes))
	}
	return shown, nil
}

func (h *Handler) offender(who Identity, e operate.TopEntry, modes map[string]core.Mode) offender {
	const longest = 255 // the list has only the beginning of a longer subject
	return offender{
		Rule: show(e.Rule), Subject: h.subject(who, e.Subject), Link: !h.redacts(who) && len(e.Subject) < longest, Refused: e.Refused, Used: e.Used,
		Mode: modes[e.Rule],
	}
}

// modes returns the modes of the attached rules by their names. If rules with one name have several
// modes, the name counts as enforced.
func (h *Handler) modes() map[string]core.Mode {
	modes := make(map[string]core.Mode)
	rules := h.attached()
	for i := range rules {
		mode := rules[i].Rule.Mode
		for _, name := range rules[i].Names {
			if other, ok := modes[name]; ok && other != mode {
				modes[name] = core.Enforce
			} else {
				modes[name] = mode
			}
		}
	}
	return modes
}
