package core_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// referenceKey returns one of several keys.
func referenceKey(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

// keyed are options with these reference keys.
func keyed(keys ...byte) core.Options {
	o := core.Options{Identify: whoSays}
	for _, key := range keys {
		o.ReferenceKeys = append(o.ReferenceKeys, referenceKey(key))
	}
	return o
}

// referenceIn returns the reference in a refusal's body.
func referenceIn(t *testing.T, r *core.Refusal) string {
	t.Helper()
	var problem struct{ Reference string }
	if err := json.Unmarshal(r.Body, &problem); err != nil || problem.Reference != r.Reference {
		t.Fatalf("the body is %s, %v; want the reference %q", r.Body, err, r.Reference)
	}
	return problem.Reference
}

// A key has one form as a text, so that services and the programs of operators have the same one.
func TestParseReferenceKeys(t *testing.T) {
	hexadecimal := func(b byte) string { return hex.EncodeToString(referenceKey(b)) }
	for text, want := range map[string][][]byte{
		"":                      nil,
		hexadecimal(0xAB):       {referenceKey(0xAB)},
		hexadecimal(1) + "\r\n": {referenceKey(1)},
		strings.ToUpper(hexadecimal(0xAB)) + " , " + hexadecimal(2) + ",\n" + hexadecimal(3) + "ff": {referenceKey(0xAB), referenceKey(2), append(referenceKey(3), 0xff)},
	} {
		if got, err := core.ParseReferenceKeys(text); err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%q: %x, %v", text, got, err)
		}
	}
	for name, text := range map[string]string{
		"no hex": "secret" + hexadecimal(1), "raw bytes": string(referenceKey('k')), "too short": hexadecimal(1)[2:],
		"half a byte": hexadecimal(1) + "0", "too many": strings.Repeat(hexadecimal(1)+",", 11), "one is wrong": hexadecimal(1) + ",secret",
	} {
		got, err := core.ParseReferenceKeys(text)
		var wrong *core.RuleError
		if !errors.As(err, &wrong) || wrong.Field != "Options.ReferenceKeys" || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), hexadecimal(1)[2:]) {
			t.Errorf("%s: %x, %v", name, got, err)
		}
	}
}

// Every refusal says what it was about, to any limiter with its key.
func TestReferences(t *testing.T) {
	limiter, elsewhere := newLimiter(t, keyed(1)), newLimiter(t, keyed(2, 1))
	bucket := core.PerHour(60).Bucket(3)
	failing := func(core.Request) (string, error) { return "", errVerify }
	for _, test := range []struct {
		rule    core.Rule
		calls   int // which are made before the one that is refused
		reason  core.Reason
		limit   core.Limit
		left    int
		wait    time.Duration // at most
		subject string
	}{
		{core.Rule{Name: "over", Seconds: 60, MaxCount: 2}, 2, core.LimitExceeded, core.PerMinute(2), 0, 62 * time.Second, "ip:192.0.2.1"},
		{core.Rule{Name: "dear", Limit: bucket, Cost: cost(2)}, 1, core.LimitExceeded, bucket, 1, time.Minute, "ip:192.0.2.1"},
		{core.Rule{Name: "user", Limit: core.PerCalendarDay(1, "Europe/Berlin"), NeedLogin: true}, 1, core.LimitExceeded, core.PerCalendarDay(1, "Europe/Berlin"), 0, 25 * time.Hour, "user:alice"},
		{core.Rule{Name: "ban", Seconds: 60, MaxCount: 1, Ban: core.Ban{After: 1, For: time.Hour}}, 2, core.Banned, core.PerMinute(1), 0, time.Hour, "ip:192.0.2.1"},
		{core.Rule{Name: "too dear", Seconds: 60, MaxCount: 1, Cost: cost(2)}, 0, core.CostTooHigh, core.PerMinute(1), 0, 0, ""},
		{core.Rule{Name: "whom", Seconds: 60, MaxCount: 1, Key: failing}, 0, core.IdentifyFailed, core.PerMinute(1), 0, time.Second, ""},
	} {
		guard, v := newGuard(t, limiter, test.rule), newView("GET", "/").As("alice")
		for range test.calls {
			guard.Check(v)
		}
		from := time.Now().Truncate(time.Microsecond)
		refusal := guard.Check(v).Refusal
		if refusal == nil {
			t.Fatalf("%s: allowed", test.rule.Name)
		}
		got, err := operate.New(elsewhere).ExplainReference(referenceIn(t, refusal))
		switch {
		case err != nil:
			t.Errorf("%s: %v", test.rule.Name, err)
		case got.Time.Before(from) || got.Time.After(time.Now()) || got.Rule != test.rule.Name || got.Reason != test.reason || got.Remaining != test.left:
			t.Errorf("%s: %v", test.rule.Name, got)
		case got.Limit.String() != test.limit.String() || got.Wait > test.wait || (got.Wait > 0) != (test.wait > 0) || got.Wait < refusal.RetryAfter:
			t.Errorf("%s: %v", test.rule.Name, got)
		case (got.Digest != "") != (test.subject != "") || got.About(test.subject) != (test.subject != "") || got.About("user:bob") || got.About(""):
			t.Errorf("%s: the digest %q is about %q: %v", test.rule.Name, got.Digest, test.subject, got.About(test.subject))
		}
	}
	if (operate.Reference{}).About("") {
		t.Error("the zero Reference is about somebody")
	}
}

// Every reason to refuse has a number of its own in references.
func TestEveryReasonHasAReference(t *testing.T) {
	for _, reason := range core.RefusingReasons() {
		limiter := newLimiter(t, keyed(1))
		text := core.ReferenceOf(limiter, core.Decision{Reason: reason, Rule: "n", Limit: core.PerMinute(5)})
		if got, err := operate.New(limiter).ExplainReference(text); err != nil || got.Reason != reason {
			t.Errorf("%q is read as %+v, %v", reason, got, err)
		}
	}
}

// A key is replaced in three steps, and at no moment a reference cannot be read. Without a key there
// are none.
func TestReferenceKeysRotate(t *testing.T) {
	steps := [][]byte{{1}, {1, 2}, {2, 1}, {2}}
	for i, makes := range steps {
		options := keyed(makes...)
		limiter := newLimiter(t, options)
		clear(options.ReferenceKeys[0]) // as the owner of the key may do
		text := core.ReferenceOf(limiter, core.Decision{Reason: core.LimitExceeded, Rule: "n", Key: "s", Limit: core.PerMinute(5)})
		for j, reads := range steps {
			got, err := operate.New(newLimiter(t, keyed(reads...))).ExplainReference(text)
			if read := err == nil && got.About("s"); read != bytes.Contains(reads, makes[:1]) {
				t.Errorf("step %d reads a reference of step %d: %v, %v", j, i, read, err)
			}
		}
	}
	without := newLimiter(t, core.Options{})
	_, err := operate.New(without).ExplainReference("x")
	wantRuleError(t, err, "", "reference", "x")
	if text := core.ReferenceOf(without, core.Decision{Reason: core.LimitExceeded}); text != "" {
		t.Error(text)
	}
}

func TestWrongReferenceKeys(t *testing.T) {
	for _, test := range []struct {
		keys  [][]byte
		value string
	}{
		{[][]byte{{}}, "key 0 of 0 bytes"},
		{[][]byte{referenceKey(1), []byte("secret")}, "key 1 of 6 bytes"},
		{[][]byte{referenceKey(1)[:31]}, "key 0 of 31 bytes"},
		{make([][]byte, 11), "11 keys"},
	} {
		_, err := core.New(core.Options{ReferenceKeys: test.keys})
		wantRuleError(t, err, "", "Options.ReferenceKeys", test.value)
		if strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("the error shows the key: %v", err)
		}
	}
}
