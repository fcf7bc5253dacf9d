package rulefile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core"
)

// callerChoosesKey looks for rules that callers escape by choosing another subject.
func (c *Checked) callerChoosesKey(r *placedRule) (whys []string) {
	at := slices.IndexFunc(r.countedBy(), func(key string) bool { return hasWord(key, "header", "query", "host") })
	if at < 0 || c.isBounded(r) {
		return nil
	}
	return append(whys, fmt.Sprintf("key: callers choose %s, and each new value starts afresh: put a rule by address beside it (key: ip)", r.countedBy()[at]))
}

// loginByAccount looks for logins that count by what a stranger can type.
func (c *Checked) loginByAccount(r *placedRule) (whys []string) {
	keys := r.countedBy()
	typed := func(key string) bool { return hasWord(key, "header", "query", "param", "value") }
	if !r.isLogin() || slices.ContainsFunc(keys, func(key string) bool { return !typed(key) }) {
		return nil
	}
	return append(whys, fmt.Sprintf("key: a login by account alone lets strangers lock the owner out: count by [%s, ip], and put a rule by address beside it", strings.Join(keys, ", ")))
}

// loginFailsOpen looks for logins that count nothing while Redis does not answer.
func (c *Checked) loginFailsOpen(r *placedRule) (whys []string) {
	if policy := r.OnStoreError; !r.isLogin() || policy != core.FailOpen && policy != (core.StorePolicy{}) || r.Mode != core.Enforce {
		return nil
	}
	return append(whys, "on_store_error: while Redis does not answer, passwords can be tried without a limit: set fail_closed, or count_locally with a share")
}

// countedBy returns the keys by which the rule counts.
func (r *placedRule) countedBy() []string {
	switch {
	case len(r.keys) > 0:
		return r.keys
	case r.NeedLogin:
		return []string{"user"}
	default:
		return []string{"ip"}
	}
}

// hasWord reports whether a key is one of these words, or begins with one and a colon.
func hasWord(key string, words ...string) bool {
	word, _, _ := strings.Cut(key, ":")
	return slices.Contains(words, word)
}

// isBounded reports whether another rule counts all calls of this one by something that callers
// cannot choose.
func (c *Checked) isBounded(r *placedRule) bool {
	for _, other := range c.loaded.rules {
		chosen := func(key string) bool { return !hasWord(key, "ip", "user", "route", "global") }
		if other.Mode == core.Enforce && !slices.ContainsFunc(other.countedBy(), chosen) &&
			includes(other.Paths, r.Paths) && includes(other.Methods, r.Methods) {
			return true
		}
	}
	return false
}

// includes reports whether a scope has all that another one has. An empty one has everything.
func includes(all, some []string) bool {
	missing := func(one string) bool { return !slices.Contains(all, one) }
	return len(all) == 0 || len(some) > 0 && !slices.ContainsFunc(some, missing)
}

var login = regexp.MustCompile(`(?i)(^|[^a-z])(log|sign)[-_ ]?(in|on)s?([^a-z]|$)|passw(or)?d|(^|[^a-z])(otp|2fa|mfa)([^a-z]|$)`)

// isLogin reports whether the name or a path of the rule is that of a login.
func (r *placedRule) isLogin() bool {
	return login.MatchString(r.Name) || slices.ContainsFunc(r.Paths, login.MatchString)
}
