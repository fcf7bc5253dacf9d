package operate

import (
	"net/http"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// Call describes a call to [Operator.Explain]. If a field is unset, the call lacks it, except
// where the field has another default.
type Call struct {
	// Method is the HTTP method. It is "" for gRPC, where Path is the full method.
	Method string
	// Host is the host that the call is made to. By default it is the one in Header.
	Host string
	// Path is the path as it is sent. A query may follow a question mark. Rules see the path as
	// net/http shows it: decoded, unless it is escaped in another way than net/http escapes it.
	Path string
	// Route is the pattern that the framework matches, such as /users/:id. By default it is found
	// among the routes that this process was called for: the one that equals Path, or else the only
	// one that can match it. A route for all paths below it, such as /files/, counts only if there
	// is no other, and then the longest does. Otherwise the route is not known. In gRPC it is Path.
	// A wildcard that is a whole segment, :id or {id}, takes its text from Path.
	Route string
	// RemoteAddr is the address of the connection's peer, with or without a port. If this is a
	// proxy that Options.ClientIP trusts, Header says who calls.
	RemoteAddr string
	// Header has the headers of the request.
	Header http.Header
	// User is the user who calls. If it is unset, Options.Identify runs.
	User string
	// Anonymous keeps Options.Identify from running: without a User, nobody is logged in. Set it if
	// others choose the Header, who could otherwise find out which passwords and tokens are right.
	Anonymous bool
	// MaxCommands, if set, bounds how many commands Redis gets. Beyond that, Redis is not asked
	// about some rules, first those that are Elsewhere, and their Errors say so.
	MaxCommands int
}

// Explanation reports how the rules attached to a Limiter would decide a call ([Operator.Explain],
// [Operator.ExplainView]), or what they have counted for a subject ([Operator.Inspect]). String
// returns it as a report for a terminal. In JSON, durations are in seconds, and bytes of a subject
// that are not UTF-8 are replaced. Fields may be added later.
type Explanation struct {
	// Time is when the store was asked, by the clock of Redis.
	Time time.Time `json:"time"`
	// Method, Route, Path, ClientIP and User are those of the call, or "" if they are not known.
	Method   string `json:"method,omitempty"`
	Route    string `json:"route,omitempty"`
	Path     string `json:"path,omitempty"`
	ClientIP string `json:"client_ip,omitempty"`
	User     string `json:"user,omitempty"`
	// Subject is the subject that Inspect was asked about.
	Subject string `json:"subject,omitempty"`
	// Reason is the reason that the call would get: that of the first rule that would refuse it,
	// otherwise SoftExceeded if a soft limit is exceeded, and otherwise Allowed. It is "" for
	// Inspect, or if it is not known. If Reason is not Allowed, Rule is the name of the rule that
	// gives it, and RetryAfter is how long that rule would refuse.
	Reason     core.Reason   `json:"reason,omitempty"`
	Rule       string        `json:"rule,omitempty"`
	RetryAfter time.Duration `json:"-"`
	// Rules are the attached rules, in the order in which they were attached.
	Rules []ExplainedRule `json:"rules"`
	// NotListed is how many Guards, Checks and rules are attached beyond the first 4,000, and not
	// listed.
	NotListed int `json:"not_listed,omitempty"`
}

// ExplainedRule is the part of an [Explanation] about one rule.
type ExplainedRule struct {
	// Name is the name by which the rule counts: Rule.Name, or a name made from its patterns or the
	// call's route.
	Name string `json:"name"`
	// Place is where the rule was attached, as file:line, or where it is written, if it comes from
	// a file with rules. Version is that of its RuleSet, or "".
	Place   string `json:"place,omitempty"`
	Version string `json:"version,omitempty"`
	// Routes are the routes that the rule's Guard was called for in this process, such as
	// "POST /reply". Up to 16 are noted: those of its first 1,000 calls, and of one in 127 later.
	Routes []string `json:"routes,omitempty"`
	// Elsewhere reports whether the rule is probably not attached to the route of the call, because
	// its Guard was not called for that route in this process, but for others, or not at all while
	// other Guards were. The Explanation ignores it where it says which rule would refuse. Rules with
	// Paths or Except are never Elsewhere, because they are for whole routers, nor are those of a
	// Guard that was called for more than 16 routes.
	Elsewhere bool `json:"elsewhere,omitempty"`
	// InHandler reports whether the rule belongs to a Check.
	InHandler bool `json:"in_handler,omitempty"`
	// Handle reports whether this is a handle, such as a [core.Counter], and no rule.
	Handle bool `json:"handle,omitempty"`
	// Applies reports whether the rule applies to the call, and Because says why or why not. If it
	// does not, the fields below are zero.
	Applies bool   `json:"applies"`
	Because string `json:"because,omitempty"`
	// Subject is the subject as counted, such as user:alice.
	Subject string `json:"subject,omitempty"`
	// Plan is what the rule's Plan returned.
	Plan string `json:"plan,omitempty"`
	// Cost is how many permits the call takes.
	Cost int `json:"cost,omitempty"`
	// Limits are the limits in force, with what is used of them.
	Limits []ExplainedLimit `json:"limits,omitempty"`
	// Override is what an operator set for the subject, for the caller's address, or for a network
	// that the address is in, or nil. A ban goes before it, unless it blocks the subject.
	Override *Override `json:"override,omitempty"`
	// OverriddenAs and BannedAs are the address or the network that the override or the ban is of, or
	// "" if it is of the Subject.
	OverriddenAs string `json:"overridden_as,omitempty"`
	BannedAs     string `json:"banned_as,omitempty"`
	// Outgoing reports whether the rule is for calls that go out. Then a ban is a pause, Bans is the
	// number of pauses after refusals since the server last answered a call, and Debt is the number of
	// turns that calls wait for.
	Outgoing bool `json:"outgoing,omitempty"`
	// BannedUntil is when the subject's ban ends, or zero if it is not banned. Bans is how often
	// the rule has banned it since its earlier bans were last forgotten, without bans by hand.
	// Strikes is the number of consecutive windows in which it was refused since the last ban.
	// Ban.After of them begin the next one.
	BannedUntil time.Time `json:"banned_until,omitzero"`
	Bans        int       `json:"bans,omitempty"`
	Strikes     int       `json:"strikes,omitempty"`
	// Mode is that of the Rule. Traits are what the Rule does besides counting calls by its limits, in
	// words such as "skips some calls" and "warns at 0.8".
	Mode   core.Mode `json:"mode,omitempty"`
	Traits []string  `json:"traits,omitempty"`
	// Reason is the reason that the call would get if there were no other rule, or "" if it is not
	// known. RetryAfter is how long the rule would refuse the call.
	Reason     core.Reason   `json:"reason,omitempty"`
	RetryAfter time.Duration `json:"-"`
	// Refuses reports whether this is the rule that would refuse the call.
	Refuses bool `json:"refuses,omitempty"`
	// Errors are those of the rule's functions and of Identify, and of counters that Redis cannot
	// read.
	Errors []string `json:"errors,omitempty"`
}

// ExplainedLimit is a limit of an [ExplainedRule], with what its subject has used of it.
type ExplainedLimit struct {
	Limit core.Limit `json:"limit"`
	// Source is where the limit comes from: "rule", "also", "plan pro", "override", or "computed" by
	// LimitFor. Until is when an override ends, or zero.
	Source string    `json:"source"`
	Until  time.Time `json:"until,omitzero"`
	// Known reports whether the store was asked, and answered. If not, the fields below are zero.
	// Unlimited is never asked for, nor is a computed limit that this process has not met.
	Known bool `json:"known"`
	// Used is how many permits are in use, and Remaining how many are left. Debt is how many of those
	// in use exceed the limit: they were charged whether they fit or not, as by [core.Counter.Charge]
	// and [core.Bill], or as turns that are handed out ahead, or before the limit was lowered.
	Used      int `json:"used"`
	Remaining int `json:"remaining"`
	Debt      int `json:"debt,omitempty"`
	// RetryAfter is the time until the call fits, if nobody else is charged. It is 0 if it fits now,
	// or never. ResetAfter is the time until nothing is in use.
	RetryAfter time.Duration `json:"-"`
	ResetAfter time.Duration `json:"-"`
}
