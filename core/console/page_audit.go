package console

import (
	"time"
)

// pageSize is the number of lines on a page of a list.
const pageSize = 100

// auditPage is what the audit page shows.
type auditPage struct {
	Entries []auditLine `json:"entries"`
	Next    string      `json:"next,omitempty"` // the parameter before of the next page
	Before  string      `json:"-"`              // that of this page
	Problem string      `json:"problem,omitempty"`
}

// auditLine is an act.
type auditLine struct {
	ID      string    `json:"id"`
	Time    time.Time `json:"time"`
	Act     string    `json:"act"`
	Rule    string    `json:"rule"`
	Subject string    `json:"subject"`
	Link    bool      `json:"-"` // the subject can be opened
	Author  string    `json:"author"`
	Note    string    `json:"note"`
	Before  string    `json:"before"`
	After   string    `json:"after"`
}

func (h *Handler) loadAudit(q *query) (any, error) {
	found, err := h.operator.Audit(q.ctx, q.get("before"), pageSize)
	if isWrong(err) {
		return nil, err
	}
	shown := &auditPage{Entries: []auditLine{}, Before: q.get("before"), Problem: problem(err)}
	for _, e := range found {
		shown.Entries = append(shown.Entries, auditLine{
			ID: e.ID, Time: e.Time, Act: e.Act, Rule: shownName(e.Rule), Subject: h.subject(q.who, e.Subject),
			Link: e.Subject != "" && !h.redacts(q.who), Author: shownName(e.Author), Note: h.about(q.who, e.Subject, e.Note),
			Before: h.about(q.who, e.Subject, e.Before), After: h.about(q.who, e.Subject, e.After),
		})
	}
	if len(found) == pageSize {
		shown.Next = found[pageSize-1].ID
	}
	return shown, nil
}
