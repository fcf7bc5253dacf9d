package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// explainPage is what the page that explains a call or a reference shows.
type explainPage struct {
	Call      call         `json:"call"`
	Explained *explanation `json:"explained,omitempty"`
	Problem   string       `json:"problem,omitempty"`
	Reference *reference   `json:"reference,omitempty"`
	Text      string       `json:"-"` // of the reference
	Of        string       `json:"-"` // the subject that the reference may be about
}

// call is a call as it is typed.
type call struct {
	Method  string `json:"method"`
	Host    string `json:"host"`
	Path    string `json:"path"`
	Route   string `json:"route"`
	Address string `json:"address"`
	User    string `json:"user"`
	Header  string `json:"header"` // lines such as "Name: value"
}

// reference is what the reference of a refusal says.
type reference struct {
	Time    time.Time `json:"time"`
	Rule    string    `json:"rule"`
	Reason  string    `json:"reason"`
	Limit   string    `json:"limit"`
	Left    int       `json:"remaining"`
	Wait    string    `json:"wait,omitempty"`
	Subject string    `json:"subject,omitempty"` // the one that was asked about
	About   bool      `json:"about"`             // whether it is about that subject
}

// Words returns the reason as a person reads it.
func (r reference) Words() string { return reasonWords(r.Reason) }

func (h *Handler) loadExplain(q *query) (any, error) {
	shown := &explainPage{
		Call: call{q.get("method"), q.get("host"), q.get("path"), q.get("route"), q.get("address"), q.get("user"), q.get("header")},
		Text: q.get("reference"), Of: q.get("of"),
	}
	switch {
	case shown.Text != "":
		return shown, h.explainReference(q, shown)
	case shown.Call.Path == "":
		shown.Call.Method = http.MethodGet // to begin with
		return shown, nil
	}
	info, err := shown.Call.info()
	if err != nil {
		return nil, err
	}
	explained, err := h.limiter.Explain(q.ctx, info)
	if isWrong(err) {
		return nil, err
	}
	shown.Explained, shown.Problem = h.explained(q.who, explained), problem(err)
	return shown, nil
}

// info returns the call that core explains.
func (c call) info() (core.CallInfo, error) {
	header, err := c.headers()
	path, address := strings.TrimSpace(c.Path), strings.TrimSpace(c.Address)
	switch {
	case err != nil:
		return core.CallInfo{}, err
	case !strings.HasPrefix(path, "/"):
		return core.CallInfo{}, fmt.Errorf("path = %q: must start with a slash, as every path does", path)
	case address != "" && !core.PeerAddr(address).IsValid():
		return core.CallInfo{}, fmt.Errorf("address = %q: must be like 203.0.113.7, or 203.0.113.7:1234", address)
	}
	return core.CallInfo{
		Method: strings.ToUpper(strings.TrimSpace(c.Method)), Host: strings.TrimSpace(c.Host), Path: path,
		Route: strings.TrimSpace(c.Route), RemoteAddr: address, User: c.User, Header: header,
	}, nil
}

func (c call) headers() (http.Header, error) {
	header := make(http.Header)
	for line := range strings.Lines(c.Header) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, ":")
		switch {
		case line == "":
		case !ok || name == "" || strings.ContainsAny(name, " \t"):
			return nil, errors.New("a header must be a line such as \"Name: value\"")
		default:
			header.Add(textproto.CanonicalMIMEHeaderKey(name), strings.TrimSpace(value))
		}
	}
	return header, nil
}

// explainReference reads a reference that somebody quoted.
func (h *Handler) explainReference(q *query, shown *explainPage) error {
	of, err := h.parseSubject(shown.Of)
	if err != nil {
		return err
	}
	r, err := h.limiter.ExplainReference(shown.Text)
	if err != nil {
		shown.Problem = readable(err.Error())
		return nil
	}
	shown.Reference = &reference{
		Time: r.Time, Rule: show(r.Rule), Reason: string(r.Reason), Limit: r.Limit.String(), Left: r.Remaining, Wait: waitOf(r.Wait),
	}
	if of != "" {
		shown.Reference.Subject, shown.Reference.About = h.subject(q.who, of), r.About(of)
	}
	return nil
}
