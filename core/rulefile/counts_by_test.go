package rulefile

import (
	"runtime"
	"testing"

	"github.com/accesslimit/accesslimit/core/operate"
)

// The limiter knows the keys of rules as they are written, also after a change.
func TestKeysAsTheyAreWritten(t *testing.T) {
	limiter := newLimiter(t)
	for key, want := range map[string]string{
		"global": "global", "header:X-Tenant": "header:X-Tenant", "[user, query:lang]": "[user, query:lang]", "tenant": "tenant", "ip": "ip",
	} {
		set, err := Load(limiter, registered, write(t, "limits.yaml", "version: 1\nrules: [{name: api, limit: 5/m, key: "+key+"}]"))
		if err != nil {
			t.Fatal(err)
		}
		guard := set.MustGuard("api")
		rules, _, _ := operate.New(limiter).Rules()
		if got := rules[len(rules)-1]; got.CountsBy != want || got.Rule.Name != "api" {
			t.Errorf("key %s: %q counts by %q", key, got.Rule.Name, got.CountsBy)
		}
		runtime.KeepAlive(guard)
		set.Close()
	}
}
