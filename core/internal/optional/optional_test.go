package optional_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/optional"
)

// reply is an error in a reply of Redis.
type reply string

func (r reply) Error() string { return string(r) }
func (r reply) RedisError()   {}

// Only an error about a missing right turns a feature off.
func TestTurnOff(t *testing.T) {
	for text, missing := range map[string]bool{
		"NOPERM this user has no permissions to run the 'xadd' command": true,
		"OOM command not allowed when used memory > 'maxmemory'":        false,
	} {
		var f optional.Feature
		if f.IsOff() {
			t.Error("a feature is off at first")
		}
		err := &failure.Error{Class: failure.Refused, Err: reply(text)}
		if f.TurnOff(err) != missing || f.IsOff() != missing {
			t.Errorf("%q turns the feature off: %t, want %t", text, f.IsOff(), missing)
		}
		if f.TurnOn(); f.IsOff() {
			t.Error("a feature that was turned on is off")
		}
	}
	var f optional.Feature
	if f.TurnOff(nil) || f.IsOff() {
		t.Error("no error turns a feature off")
	}
}
