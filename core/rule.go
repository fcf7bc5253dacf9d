package core

import (
	"time"
	"unicode/utf8"
)

// Rule is the annotation on a route: who may call how often. Only the span is required.
//
//	core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}
type Rule struct {
	// Seconds is the span in seconds. Either this or Window is required.
	Seconds int
	// Window is the span as a duration, 1 ms to 366 days, in whole microseconds.
	Window time.Duration
	// MaxCount is how many calls pass in a span, 1 to 10^12; 5 unless set.
	MaxCount int
	// NeedLogin lets only a known user call, counted by user: who is nobody to Options.Identify gets 401. It needs
	// Options.Identify. A call that ends in 401 is not charged to this rule: guard the login itself with a rule by IP,
	// in a middleware before this one.
	NeedLogin bool

	// Name is what the counters are called, in Redis and in headers: printable ASCII, at most 128 bytes. A named rule has
	// one counter per caller, shared by every route that a rule of this name is attached to; another limit under the same
	// name is refused.
	//
	// Unset, a rule with Paths is named after its methods and patterns, so a change of these starts afresh, and a rule without
	// after the call's METHOD and the route's pattern (a HEAD is a GET), so each route counts by itself; calls without a
	// known route share one counter.
	// Danger: two unnamed rules with the same span, one on the whole router and one on a route, share that route's
	// counter and charge it twice. A rule for a whole router wants a Name or Paths.
	Name string
	// Algorithm is how calls are counted; SlidingWindow unless set.
	Algorithm Algorithm
	// Burst is the size of a TokenBucket's bucket; MaxCount unless set. The other algorithms have none.
	Burst int

	// Key says whom to count; the user with NeedLogin, otherwise the client's IP unless set. An empty key counts by IP. An
	// error means that it could not be found out: the call gets 503.
	Key KeyFunc
	// Cost is the weight of a call: 0 is not counted, a negative one counts 1 and is logged, one that can never fit gets
	// 400. Unset, every call costs 1.
	Cost func(Request) int

	// Paths are the patterns (doublestar: /limit/**, /api/*/items; for gRPC the full method) of the calls that the rule
	// applies to when it is attached to a whole router; all calls unless set. It applies if any reading of the call matches:
	// the route's pattern where the framework knows it, the path as the framework routes it, decoded, and cleaned of dots
	// and double slashes.
	Paths []string
	// Except are the patterns of calls that the rule does not apply to. An exception holds only if every reading of the
	// call matches, so that no spelling of a path walks around the rule. So it must match the route's pattern, too: under a
	// route /proxy/*file no /proxy/public/** can be excepted.
	Except []string
	// Methods are the HTTP methods that the rule applies to, in capitals; all unless set. GET takes HEAD with it. gRPC calls
	// have none, so it applies to all of them.
	Methods []string

	// OnStoreError is what happens to calls that Redis does not answer in time or with an error: while it is down, full or
	// overloaded, or when more calls at once wait for a connection than the client's PoolSize can serve; FailOpen unless set.
	// Danger: FailOpen in front of a login lets passwords be tried meanwhile; FailClosed refuses everybody (503).
	OnStoreError OnStoreError
	// Message is what a refused caller reads, in the problem's detail or the gRPC status; a sentence with the wait unless set.
	Message string
}

// OnStoreError is a rule's policy for calls that the store cannot answer.
type OnStoreError uint8

const (
	// FailOpen lets the calls pass, uncounted.
	FailOpen OnStoreError = iota
	// FailClosed refuses them: 503, or UNAVAILABLE.
	FailClosed
)

// String is the policy's name, as it is spelled in Go.
func (p OnStoreError) String() string {
	if p == FailClosed {
		return "FailClosed"
	}
	return "FailOpen"
}

// defaultMaxCount is what MaxCount is unless set.
const defaultMaxCount = 5

// limit is the rule's arithmetic.
func (r *Rule) limit() Limit {
	l := Limit{Max: r.MaxCount, Window: r.Window, Algorithm: r.Algorithm, Burst: r.Burst}
	if r.MaxCount == 0 {
		l.Max = defaultMaxCount
	}
	if r.Seconds != 0 {
		l.Window = time.Duration(r.Seconds) * time.Second
	}
	return l
}

// check finds what is wrong with a rule by itself; nil is nothing.
func (r *Rule) check() *RuleError {
	wrong := func(field string, value any, why string) *RuleError {
		return &RuleError{Rule: r.Name, Field: field, Value: value, Why: why}
	}
	switch {
	case r.Seconds == 0 && r.Window == 0:
		return wrong("Seconds", 0, "a rule needs a span: set Seconds or Window")
	case r.Seconds != 0 && r.Window != 0:
		return wrong("Seconds", r.Seconds, "a rule has one span: set Seconds or Window, not both")
	case r.Seconds < 0 || r.Seconds > 366*24*3600:
		return wrong("Seconds", r.Seconds, "must be 1 to 31622400 (366 days)")
	case r.OnStoreError > FailClosed:
		return wrong("OnStoreError", uint8(r.OnStoreError), "must be FailOpen or FailClosed")
	}
	if why := badName(r.Name); why != "" {
		return wrong("Name", r.Name, why)
	}
	if _, err := r.limit().compile(); err != nil {
		return r.spell(err.(*RuleError))
	}
	if !utf8.ValidString(r.Message) {
		return wrong("Message", r.Message, "must be UTF-8")
	}
	return r.checkScope(wrong)
}

// spell names a limit's field as the rule spells it.
func (r *Rule) spell(err *RuleError) *RuleError {
	err.Rule = r.Name
	if err.Field == "Max" {
		err.Field = "MaxCount"
	}
	return err
}

// checkScope looks at where the rule applies.
func (r *Rule) checkScope(wrong func(string, any, string) *RuleError) *RuleError {
	for _, list := range [...]struct {
		field    string
		patterns []string
	}{{"Paths", r.Paths}, {"Except", r.Except}} {
		for _, pattern := range list.patterns {
			if why := badPattern(pattern); why != "" {
				return wrong(list.field, pattern, why)
			}
		}
	}
	for _, method := range r.Methods {
		if why := badMethod(method); why != "" {
			return wrong("Methods", method, why)
		}
	}
	return nil
}

// maxName bounds a name, which every response carries in a header.
const maxName = 128

func badName(name string) string {
	if len(name) > maxName {
		return "must be at most 128 bytes"
	}
	if !printable(name) {
		return "must be printable ASCII, because headers carry it"
	}
	return ""
}

func printable(text string) bool {
	for i := range len(text) {
		if text[i] < 0x20 || text[i] > 0x7e {
			return false
		}
	}
	return true
}
