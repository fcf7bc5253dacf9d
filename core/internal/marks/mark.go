// Package marks keeps what was decided about single subjects: that an operator blocks one, bans it
// for a while, lifts its limits or gives it others, and that a rule has banned one. Each process keeps
// all marks of its prefix in a table, and looks there before it counts a call. So looking for
// marks costs no trip, and they hold in an outage.
//
// In Redis, the marks are in one hash, their ends in two sorted sets (those of operators, and the bans
// of rules with the removals), and the latest changes in a stream. One script writes them all: act.lua.
// Each mark has a number, which grows with the time of the act. Of two marks of one subject, the
// higher number wins, but a rule's ban never replaces an operator's. A removal is a mark, too, and is kept
// for a day. So changes may arrive twice, late or in any order.
//
// Every half second, a process reads the stream after the last entry that it has read (follow.go). If
// that entry is not there any more, it reads the whole hash. If Redis has lost something, and the process
// did not just fall behind, it writes back what the hash lacks (restore.go).
package marks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind says what a mark does.
type Kind string

// The kinds of marks, by their names in Redis and in files.
const (
	Blocked   Kind = "blocked"   // the rule refuses all calls of the subject
	Unlimited Kind = "unlimited" // the rule neither counts nor refuses calls of the subject
	Limited   Kind = "limited"   // Limits take the place of all limits of the rule
	Removed   Kind = "removed"   // none of these holds any more

	Banned   Kind = "banned"   // the rule refuses all calls of the subject for a while
	Unbanned Kind = "unbanned" // the ban is over
)

// kinds are all kinds. Of several marks that hold, the one whose kind comes first counts.
var kinds = [...]Kind{Blocked, Banned, Unlimited, Limited, Removed, Unbanned}

// Mark is what was decided about a subject under the rules of a name. A subject has one ban and one
// other mark under each rule. A Mark is not changed once it is made.
type Mark struct {
	// Calls read the first fields, which fit into one or two lines of a processor's cache.
	Kind   Kind    `json:"mark"`
	number int64   // of the act
	ends   int64   // when it ends by Options.Now, or never
	limits *limits // what Options.Compile made of Limits
	// unconfirmed reports whether Redis did not confirm the act. Then before is the mark that holds
	// afterwards, or nil.
	unconfirmed bool
	before      *Mark

	Rule    string `json:"rule"`
	Subject string `json:"subject,omitzero"`        // or a network, such as ip:203.0.113.0/24
	Bytes   []byte `json:"subject_bytes,omitempty"` // the Subject in JSON if it is not UTF-8
	// Limits are the limits of a Limited mark in their text form, separated by commas.
	Limits string `json:"limits,omitzero"`
	// Since is when the act was done, and Until when the mark ends, both by the clock of Redis, in
	// microseconds since the epoch. Until is 0 if the mark does not end by itself.
	Since int64 `json:"since,omitzero"`
	Until int64 `json:"until,omitzero"`
	// Author and Note are those of the operator. ByRule reports whether a rule imposed the ban, and
	// Bans how often it has done so in a row.
	Author string `json:"author,omitzero"`
	Note   string `json:"note,omitzero"`
	ByRule bool   `json:"by_rule,omitzero"`
	Bans   int    `json:"bans,omitzero"`
}

// confirmed returns the mark that Redis has, as far as is known, or nil.
func (m *Mark) confirmed() *Mark {
	if m != nil && m.unconfirmed {
		return m.before
	}
	return m
}

// holding returns the mark that holds at a time, or nil.
func (m *Mark) holding(now int64) *Mark {
	if m != nil && m.unconfirmed && m.ends <= now {
		m = m.before
	}
	if m == nil || m.isRemoval() || m.ends <= now {
		return nil
	}
	return m
}

// never is the end of a mark that does not end by itself.
const never = 1 << 62

func (m *Mark) endsByItself() bool { return m != nil && m.ends != never }

// Compiled returns what Options.Compile made of the mark's Limits.
func (m *Mark) Compiled() any { return m.limits.made }

// Refuses reports whether the mark refuses all calls of its subject.
func (m *Mark) Refuses() bool { return m.Kind == Blocked || m.Kind == Banned }

// isBan reports whether the mark takes the place of the subject's ban, and not of its other mark.
func (m *Mark) isBan() bool { return m.Kind == Banned || m.Kind == Unbanned }

// isByRule reports whether this is a ban that a rule imposed.
func (m *Mark) isByRule() bool { return m.Kind == Banned && m.ByRule }

// isRemoval reports whether the mark says that there is none.
func (m *Mark) isRemoval() bool { return m.Kind == Removed || m.Kind == Unbanned }

// makesRoom reports whether the mark may be dropped to make room for another.
func (m *Mark) makesRoom() bool { return m.isByRule() || m.isRemoval() }

const (
	// MaxSubject is the length of the longest subject that is stored as it is, in bytes.
	MaxSubject = 255
	// keptOfLong is how many bytes are stored of a longer one.
	keptOfLong = MaxSubject - 30
)

// nameOf returns the form in which a subject is stored: the subject itself or, if it is long, its
// beginning and its hash. This is longer than MaxSubject, so no two subjects have one name.
func nameOf[T string | []byte](subject T) string {
	if len(subject) <= MaxSubject {
		return string(subject)
	}
	sum := sha256.Sum256([]byte(subject))
	return string(subject[:keptOfLong]) + "#" + hex.EncodeToString(sum[:16])
}

// nameByOperator is nameOf, but keeps a subject that is a name already, as lists and files show it.
func nameByOperator(subject string) string {
	if len(subject) == keptOfLong+1+32 && subject[keptOfLong] == '#' {
		return strings.Clone(subject)
	}
	return nameOf(subject)
}

// fieldOf returns the name of a mark in the hash. No two are the same, because an escaped rule has no
// space.
func fieldOf(ban bool, rule, name string) string {
	class := "mark "
	if ban {
		class = "ban "
	}
	return class + escapeRule.Replace(rule) + " " + name
}

var escapeRule = strings.NewReplacer("%", "%25", " ", "%20")

func (m *Mark) field() string { return fieldOf(m.isBan(), m.Rule, m.Subject) }

// text returns the mark as JSON, without Since and Until, which are stored before it.
func (m *Mark) text() string {
	bare := *m
	bare.Since, bare.Until = 0, 0
	if !utf8.ValidString(m.Subject) { // JSON would change it
		bare.Subject, bare.Bytes = "", []byte(m.Subject)
	}
	text, _ := json.Marshal(&bare) // texts and numbers can always be encoded
	return string(text)
}

// parse reads a mark in the form in which it is stored: number, Since, Until, and text.
func parse(stored string) (*Mark, error) {
	m := new(Mark)
	rest, ok := stored, true
	for _, number := range [...]*int64{&m.number, &m.Since, &m.Until} {
		var digits string
		digits, rest, _ = strings.Cut(rest, " ")
		n, err := strconv.ParseInt(digits, 10, 64)
		*number, ok = n, ok && err == nil && 0 <= n && n < 1<<53
	}
	since, until := m.Since, m.Until
	err := json.Unmarshal([]byte(rest), m)
	kind := slices.Index(kinds[:], m.Kind)
	if err != nil || !ok || kind < 0 {
		return nil, fmt.Errorf("a mark cannot be read: %.200q", stored)
	}
	m.Kind = kinds[kind] // whose text all marks share
	m.Since, m.Until = since, until
	if m.Bytes != nil {
		m.Subject, m.Bytes = string(m.Bytes), nil
	}
	return m, nil
}
