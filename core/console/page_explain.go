package console

import (
	"context"
	"net/http"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// explainPage is what the page that explains a call or a reference shows.
type explainPage struct {
	Call      call         `json:"call"`
	Explained *explanation `json:"explained,omitempty"`
	Problem   string       `json:"problem,omitempty"`
	Reference *reference   `json:"reference,omitempty"`
	Text      string       `json:"-"` // the text of the reference
	Of        string       `json:"-"` // the subject that the reference may be about
	Headers   bool         `json:"-"` // whether the call may have headers and a query
}

// reference is the content of a refusal's reference.
type reference struct {
	Time   time.Time   `json:"time"`
	Rule   string      `json:"rule"`
	Reason core.Reason `json:"reason"`
	Limit  string      `json:"limit"`
	Left   int         `json:"remaining"`
	Wait   string      `json:"wait,omitempty"`
	Asked  string      `json:"asked_about,omitempty"` // the subject of the question
	About  bool        `json:"about"`                 // whether the refusal is about that subject
}

// Words returns the reason as a person reads it.
func (r reference) Words() string { return reasonWords(r.Reason) }

func (h *Handler) loadExplain(q *query) (any, error) {
	shown := &explainPage{
		Call: call{q.get("method"), q.get("host"), q.get("path"), q.get("route"), q.get("address"), q.get("user"), q.get("header")},
		Text: q.get("reference"), Of: q.get("of"), Headers: q.who.Role == Operator,
	}
	switch {
	case shown.Text != "":
		return shown, h.explainReference(q, shown)
	case shown.Call.Path == "":
		shown.Call.Method = http.MethodGet // to begin with
		return shown, nil
	}
	info, err := shown.Call.info()
	if err == nil {
		err = mayExplain(q.who, &info)
	}
	if err != nil {
		return nil, err
	}
	info.MaxCommands = mostCommands
	// The functions of rules must not find the context of the page's own request.
	explained, err := operate.New(h.limiter).Explain(context.Background(), info)
	if isWrong(err) {
		return nil, err
	}
	shown.Explained, shown.Problem = h.explained(q.who, explained), problem(err)
	return shown, nil
}

// explainReference reads a reference that somebody quoted.
func (h *Handler) explainReference(q *query, shown *explainPage) error {
	of, err := h.operator.Subject(shown.Of)
	if err != nil {
		return err
	}
	r, err := h.operator.ExplainReference(shown.Text)
	if err != nil {
		return err
	}
	shown.Reference = &reference{
		Time: r.Time, Rule: show(r.Rule), Reason: r.Reason, Limit: r.Limit.String(), Left: r.Remaining, Wait: waitOf(r.Wait),
	}
	if of != "" {
		shown.Reference.Asked, shown.Reference.About = h.subject(q.who, of), r.About(of)
	}
	return nil
}
