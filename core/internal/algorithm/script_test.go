package algorithm_test

import (
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// scripts returns all scripts that are sent to Redis.
func scripts() map[string]*algorithm.Script {
	all := map[string]*algorithm.Script{
		"renew": algorithm.Renew, "reserve": algorithm.Reserve, "records": algorithm.Records,
		"pause begins": algorithm.BeginPause, "pause over": algorithm.PauseOver,
	}
	var mixed []algorithm.Counter
	var charges []algorithm.Charge
	var billed []algorithm.Counter
	for _, kind := range algorithm.Kinds() {
		counter := algorithm.Counter{Limit: &algorithm.Limit{Kind: kind}}
		charge := algorithm.Charge{Limit: counter.Limit}
		all[kind.Tag()] = algorithm.DecideScript([]algorithm.Counter{counter, counter})
		if kind.Properties().HasPermits() { // nothing of it is ever given back
			all[kind.Tag()+" given back"] = algorithm.GiveBackScript([]algorithm.Charge{charge})
		}
		if kind.Properties().Debts {
			billed = append(billed, counter)
		}
		mixed, charges = append(mixed, counter), append(charges, charge)
	}
	all["up to"], all["equal"] = algorithm.UpToScript(billed), algorithm.EqualScript(billed)
	all["charge"], all["charge once"] = algorithm.ChargeScript(billed, false), algorithm.ChargeScript(billed, true)
	all["open"], all["settle"] = algorithm.OpenScript(billed), algorithm.SettleScript(billed)
	all["mixed"], all["mixed, given back"] = algorithm.DecideScript(mixed), algorithm.GiveBackScript(charges)
	charges[0].Record = []byte("record")
	all["mixed, given back once"] = algorithm.GiveBackScript(charges)
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

// Numbers are written only by struct.pack and in replies, because tostring and .. would round them
// to 14 digits.
func TestScriptsWriteNoNumbersAsText(t *testing.T) {
	for name, script := range scripts() {
		for _, wrong := range []string{"tostring", "cjson", "cmsgpack", "string.format"} {
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
