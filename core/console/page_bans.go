package console

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// bansPage is what the page about the bans of a rule shows.
type bansPage struct {
	Rule    string    `json:"rule"`
	Rules   choice    `json:"rules"` // to choose from
	Bans    []banLine `json:"bans"`
	Next    string    `json:"next,omitempty"` // the parameter after of the next page
	After   string    `json:"-"`              // that of this page
	Hint    string    `json:"hint,omitempty"` // about the rule, if it is probably misspelled
	Problem string    `json:"problem,omitempty"`
}

// banLine is a ban.
type banLine struct {
	Subject string    `json:"subject"`
	Link    bool      `json:"-"` // the subject can be opened
	Until   time.Time `json:"until"`
	Left    string    `json:"left"` // the time until then
	Cause   string    `json:"cause"`
	Bans    int       `json:"bans"`
	Author  string    `json:"author"`
	Note    string    `json:"note"`
}

func (h *Handler) loadBans(q *query) (any, error) {
	shown := &bansPage{Rules: h.banningRules(), Bans: []banLine{}, After: q.get("after")}
	rule, err := parse(q.get("rule"))
	if err != nil {
		return nil, err
	}
	after, err := h.openCursor(q.who, shown.After)
	if err != nil {
		return nil, err
	}
	if rule == "" {
		if len(shown.Rules) == 0 {
			return shown, nil
		}
		rule, _ = parse(shown.Rules[0])
	}
	found, next, err := h.operator.Bans(q.ctx, rule, after, pageSize)
	if isWrong(err) {
		return nil, err
	}
	shown.Rule, shown.Problem, shown.Next = show(rule), problem(err), h.cursor(q.who, next)
	shown.Hint = hintIfMissing(shown.Rules, shown.Rule, notBanning)
	for _, e := range found {
		shown.Bans = append(shown.Bans, h.banLine(q.who, e))
	}
	return shown, nil
}

func (h *Handler) banLine(who Identity, e operate.BanEntry) banLine {
	return banLine{
		Subject: h.subject(who, e.Subject), Link: !h.redacts(who), Until: e.Until, Left: waitOf(time.Until(e.Until)),
		Cause: e.Cause, Bans: e.Bans, Author: shownName(e.Author), Note: h.about(who, e.Subject, e.Note),
	}
}

// banningRules returns the names of the attached rules that see bans.
func (h *Handler) banningRules() choice {
	return h.attachedNames(func(r *core.Rule) bool { return r.Ban != core.Ban{} && r.Mode != core.DryRun })
}

// cursor returns the subject where the next page begins. It is encrypted for viewers who may not
// see subjects.
func (h *Handler) cursor(who Identity, next string) string {
	switch {
	case next == "":
		return ""
	case h.redacts(who):
		return base64.RawURLEncoding.EncodeToString(h.seal.Seal(nil, nil, []byte(next), nil))
	default:
		return show(next)
	}
}

// openCursor reads what cursor returned.
func (h *Handler) openCursor(who Identity, cursor string) (after string, err error) {
	if cursor == "" || !h.redacts(who) {
		return parse(cursor)
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		sealed, err = h.seal.Open(nil, nil, sealed, nil)
	}
	if err != nil {
		return "", errors.New("this link was made by another process: begin with the first page")
	}
	return string(sealed), nil
}

func newSeal(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key's length is wrong
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return seal
}
