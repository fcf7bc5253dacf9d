package core_test

import (
	"encoding/json"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// The text form of a mode reads as the same mode. A text that is none is a *RuleError, and changes
// nothing.
func TestModeText(t *testing.T) {
	for mode, text := range map[core.Mode]string{core.Enforce: `"enforce"`, core.Soft: `"soft"`, core.DryRun: `"dry_run"`} {
		if written, err := json.Marshal(mode); err != nil || string(written) != text {
			t.Errorf("%v is written %s (%v), want %s", mode, written, err, text)
		}
		read := core.Mode(77)
		if err := json.Unmarshal([]byte(text), &read); err != nil || read != mode {
			t.Errorf("%s is read as %v (%v), want %v", text, read, err, mode)
		}
	}
	read := core.Soft
	for _, text := range []string{"", "dry run", "DryRun", "Mode(7)"} {
		wantRuleError(t, read.UnmarshalText([]byte(text)), "", "Mode", text)
	}
	if read != core.Soft || core.Mode(7).String() != "Mode(7)" {
		t.Errorf("the mode has become %v, and an unknown one is %v", read, core.Mode(7))
	}
}
