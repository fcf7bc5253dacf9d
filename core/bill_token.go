package core

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// billToken is the content of a bill's token.
type billToken struct {
	Name, Subject []byte // bytes, because they may be no UTF-8
	ID            string
	At, Estimate  int64
	MaxDebt       float64
	Charges       []billedLimit
}

// billedLimit is a limit that a bill charged, in its text form, and the position of the charge.
type billedLimit struct {
	Limit    string
	Position int64
}

// Token returns a text by which [Counter.Resume] finds the bill, also in another process. It is not
// secret, but whoever may change it can change what a bill of this subject gives back: pass it within
// the service only.
func (b *Bill) Token() string {
	if b == nil {
		return ""
	}
	t := billToken{Name: []byte(b.name), Subject: []byte(b.subject), ID: b.id, MaxDebt: b.bill.Share}
	for i := range b.bill.Charges {
		charge := &b.bill.Charges[i]
		t.At, t.Estimate = charge.At, charge.Cost
		t.Charges = append(t.Charges, billedLimit{b.limits[i].String(), charge.Position})
	}
	text, _ := json.Marshal(t) // it cannot fail
	return base64.RawURLEncoding.EncodeToString(text)
}

// Resume returns the bill with this token, for a process other than the one that opened it. It does not
// ask the store whether the bill is still open. Both processes must have the same Options.Prefix, and
// the counter the same name; its limits may have changed meanwhile. A token of something else is a
// *[RuleError].
func (c Counter) Resume(token string) (*Bill, error) {
	if c.handle == nil {
		return nil, errZeroHandle
	}
	name := c.handle.named.name
	wrong := func(why string) (*Bill, error) {
		return nil, wrongArgument(name, "token", strings.Clone(token), why)
	}
	var t billToken
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(text, &t) != nil {
		return wrong("is no token of a bill")
	}
	if string(t.Name) != name {
		return wrong("is the token of a bill of another counter: " + string(t.Name))
	}
	b := &Bill{front: c.handle.front, costs: c.handle.named.tally.Costs(), name: name, subject: string(t.Subject), id: t.ID}
	if !b.restore(&t) {
		return wrong("is no token of a bill")
	}
	return b, nil
}

// restore restores what a bill was charged from its token. It reports whether the token can be one.
func (b *Bill) restore(t *billToken) bool {
	id, err := base64.RawURLEncoding.DecodeString(t.ID)
	if err != nil || len(id) != 16 || b.subject == "" || !isDebtShare(t.MaxDebt) {
		return false
	}
	b.bill.Share, b.bill.Key = t.MaxDebt, b.key()
	if len(t.Charges) > 0 && (t.At < 1 || t.At >= algorithm.LatestTime || t.Estimate < 1 || t.Estimate > algorithm.MaxPermits) {
		return false
	}
	for _, of := range t.Charges {
		limit, err := ParseLimit(of.Limit)
		if err != nil || limit == Unlimited || of.Position < 0 || of.Position >= algorithm.LatestTime {
			return false
		}
		if !b.restoreCharge(limit, of.Position, t) {
			return false
		}
	}
	return true
}

// restoreCharge restores the charge on one limit. It reports whether the limit can be in debt, and is
// the only one of its counter.
func (b *Bill) restoreCharge(limit Limit, position int64, t *billToken) bool {
	compiled := &b.front.limits.of(limit).compiled
	charge := algorithm.Charge{
		Key:   rediskey.AppendLimit(nil, b.front.KeyHead, b.subject, b.name, false, compiled),
		Limit: compiled, Cost: t.Estimate, At: t.At, Position: position, InDebt: true,
	}
	again := slices.ContainsFunc(b.bill.Charges, func(c algorithm.Charge) bool { return bytes.Equal(c.Key, charge.Key) })
	b.limits, b.bill.Charges = append(b.limits, limit), append(b.bill.Charges, charge)
	return compiled.CanBeInDebt() && !again
}
