package algorithm_test

import (
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// scripts returns all scripts that are sent to Redis.
func scripts() map[string]*algorithm.Script {
	all := map[string]*algorithm.Script{"records": algorithm.Records}
	var every, owing algorithm.KindSet
	for _, kind := range algorithm.Kinds() {
		of := algorithm.KindSet(1) << kind
		every |= of
		if kind.Properties().Debts {
			owing |= of
		}
		alone := algorithm.Op{Counters: []algorithm.Counter{{Limit: &algorithm.Limit{Kind: kind}}}}
		all[kind.Tag()+" alone"], all[kind.Tag()], all[kind.Tag()+" changed"] = alone.Script(), algorithm.DecideScript(of), algorithm.ChangeScript(of)
	}
	all["all"], all["all changed"], all["settle"] = algorithm.DecideScript(every), algorithm.ChangeScript(every), algorithm.SettleScript(owing)
	return all
}

// A script reads the clock once, because TIME goes on while it runs. It uses no other time.
func TestScriptsReadTheClockOnce(t *testing.T) {
	for name, script := range scripts() {
		if n := strings.Count(script.Text, "TIME"); n != 1 {
			t.Errorf("%s: TIME stands there %d times", name, n)
		}
		if strings.Contains(script.Text, "os.") {
			t.Errorf("%s reads another clock", name)
		}
		timed(t, script) // fails when the clock is not read in the lines that the tests replace
	}
}

// Numbers are written only by struct.pack, string.format('%d'), cmsgpack and in replies, because tostring and
// .. would round them to 14 digits.
func TestScriptsWriteNoNumbersAsText(t *testing.T) {
	for name, script := range scripts() {
		for _, wrong := range []string{"tostring", "cjson"} {
			if strings.Contains(script.Text, wrong) {
				t.Errorf("%s uses %s", name, wrong)
			}
		}
	}
}

func TestScriptsAreKnownByTheirSHA1(t *testing.T) {
	s := startServer(t)
	names := make(map[string]string)
	for name, script := range scripts() {
		if sha := s.load(script.Text); sha != script.SHA1 {
			t.Errorf("%s: Redis calls it %s, we %s", name, sha, script.SHA1)
		}
		if other, taken := names[script.SHA1]; taken {
			t.Errorf("%s and %s are one script", name, other)
		}
		names[script.SHA1] = name
	}
}
