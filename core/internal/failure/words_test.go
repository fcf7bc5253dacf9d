package failure

import (
	"cmp"
	"testing"
)

// Each cause is found by its words: its class at the start of a reply or, if it is marked so, in an
// error of a script, and its advice anywhere. No earlier cause hides it.
func TestCauses(t *testing.T) {
	for _, c := range causes {
		first := cmp.Or(c.class, Unexpected)
		later := first
		if c.marks&inScript == 0 {
			later = Unexpected
		}
		for _, words := range c.words {
			if got := ClassOfReply("ERR " + words + " of a test"); got != first {
				t.Errorf("a reply that begins with %q has the class %s, want %s", words, got, first)
			}
			if got := ClassOfReply("ERR Error running script: -" + words); got != later {
				t.Errorf("an error of a script with %q has the class %s, want %s", words, got, later)
			}
			if change, _ := Advice(Unreachable, "no connection: "+words); change != c.change {
				t.Errorf("the advice about %q is %q, want %q", words, change, c.change)
			}
		}
		if (c.class == Refused || c.class == "") && c.change == "" {
			t.Errorf("there is no advice about %q", c.words)
		}
	}
}

// Words of another server, or within a name, do not change the class of a reply.
func TestClassOfReply(t *testing.T) {
	for text, want := range map[string]Class{
		"ERR i/o timeout":       Unexpected,
		"ERR the TASK is BUSY":  Unexpected,
		"MOVED 1 BLOOM.a:1":     NotReady,
		"ERR syntax error":      Refused,
		"ERR something is new":  Unexpected,
		"NOPERM User ASK is no": Refused,
	} {
		if got := ClassOfReply(text); got != want {
			t.Errorf("%q has the class %s, want %s", text, got, want)
		}
	}
}
