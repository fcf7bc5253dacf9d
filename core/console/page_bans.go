package console

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"time"

	"github.com/accesslimit/accesslimit/core/operate"
)

// bansPage is what the page about bans shows.
type bansPage struct {
	Rule    string    `json:"rule"`  // or "" for all rules
	Rules   choice    `json:"rules"` // to choose from
	Bans    []banLine `json:"bans"`
	Here    int       `json:"known_here,omitempty"` // how many bans this process knows, if Redis does not answer
	Next    string    `json:"next,omitempty"`       // the parameter after of the next page
	After   string    `json:"-"`                    // that of this page
	Hint    string    `json:"hint,omitempty"`       // about the rule, if it is probably misspelled
	Problem string    `json:"problem,omitempty"`
}

// banLine is a ban.
type banLine struct {
	Rule    string    `json:"rule,omitempty"` // "" on the page about a subject
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
	shown := &bansPage{Rules: h.attachedNames(anyRule), Bans: []banLine{}, After: q.get("after")}
	rule, err := parse(q.get("rule"))
	if err != nil {
		return nil, err
	}
	after, err := h.openCursor(q.who, shown.After)
	if err != nil {
		return nil, err
	}
	found, next, err := h.bans(q.ctx, rule, after)
	if isWrong(err) {
		return nil, err
	}
	shown.Problem, shown.Next = problem(err), h.cursor(q.who, next)
	if err != nil {
		if found, err = h.operator.KnownBans(rule); err != nil {
			return nil, err
		}
		shown.Here = len(found)
		found = found[:min(len(found), pageSize)]
	}
	if rule != "" {
		shown.Rule = show(rule)
		shown.Hint = hintIfMissing(shown.Rules, shown.Rule, unknownRule)
	}
	for _, e := range found {
		line := h.banLine(q.who, e)
		line.Rule = show(e.Rule)
		shown.Bans = append(shown.Bans, line)
	}
	return shown, nil
}

// bans returns a page of the bans of a rule, or of all rules for "".
func (h *Handler) bans(ctx context.Context, rule, after string) (page []operate.BanEntry, next string, err error) {
	if rule == "" {
		return h.operator.AllBans(ctx, after, pageSize)
	}
	return h.operator.Bans(ctx, rule, after, pageSize)
}

func (h *Handler) banLine(who Identity, e operate.BanEntry) banLine {
	return banLine{
		Subject: h.subject(who, e.Subject), Link: !h.redacts(who), Until: e.Until, Left: waitOf(time.Until(e.Until)),
		Cause: e.Cause, Bans: e.Bans, Author: shownName(e.Author), Note: h.about(who, e.Subject, e.Note),
	}
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
