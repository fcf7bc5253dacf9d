package examples_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// rulesOfQuickstart returns a copy of the quickstart's rules file, and its text.
func rulesOfQuickstart(t *testing.T) (path, text string) {
	t.Helper()
	content, err := os.ReadFile("quickstart/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "limits.yaml")
	writeRules(t, path, string(content))
	return path, string(content)
}

// writeRules replaces a file, as most editors do.
func writeRules(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// policies returns the limits that a call is told.
func (s *service) policies(call string) string {
	s.t.Helper()
	return strings.Join(s.call(call).header.Values("RateLimit-Policy"), ", ")
}

// awaitPolicy makes calls until they are told a limit.
func (s *service) awaitPolicy(call, want string) {
	s.t.Helper()
	last := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if last = s.policies(call); strings.Contains(last, want) {
			return
		}
	}
	s.t.Fatalf("%s: is told %s, want %s", call, last, want)
}

// The limits of a running service change with its rules file, and what was used so far counts. A
// file that is wrong changes nothing, and the log says where it is wrong.
func TestRulesFile(t *testing.T) {
	path, text := rulesOfQuickstart(t)
	longer := strings.Replace(text, "4/5s fixed", "4/h", 1) // so that nothing comes back during the test
	writeRules(t, path, longer)
	s := start(t, "quickstart", "RULES="+path)
	s.wantFixed(http.StatusOK, 4)
	s.wantFixed(http.StatusTooManyRequests, 1)
	if got := s.policies("GET /healthz") + s.policies("POST /reply"); got != `"api";q=100;w=1` {
		t.Errorf("the policies are %s", got)
	}

	writeRules(t, path, strings.Replace(longer, "4/h", "6/h", 1))
	s.awaitPolicy("GET /fixed", `"fixed";q=6;w=3600`) // this call passed, the others did not
	s.wantFixed(http.StatusOK, 1)
	s.wantFixed(http.StatusTooManyRequests, 1)

	writeRules(t, path, strings.Replace(longer, "4/h", "0/h", 1))
	s.awaitLog(path + `:16:12: rule "fixed": limit = "0/h": `)
	s.wantFixed(http.StatusTooManyRequests, 1)

	writeRules(t, path, strings.Replace(longer, "4/h", "7/h", 1))
	s.awaitPolicy("GET /fixed", `"fixed";q=7;w=3600`)
	s.wantFixed(http.StatusTooManyRequests, 1)
}

// The file has the limits that are in Go.
func TestRulesFileHasTheSameLimits(t *testing.T) {
	path, _ := rulesOfQuickstart(t)
	inGo, inFile := start(t, "quickstart"), start(t, "quickstart", "RULES="+path)
	for call, name := range map[string]string{
		"GET /": "", "GET /healthz": "", "GET /limit/anything": "paths", "GET /limit/free/anything": "",
		"GET /users/1": "users", "GET /burst": "burst", "GET /fixed": "fixed", "POST /reply": "reply",
	} {
		want, got := inGo.call(call, asAlice), inFile.call(call, asAlice)
		policies := strings.Split(strings.Join(want.header.Values("RateLimit-Policy"), ", "), `, "`)
		if len(policies) == 2 { // the second is named after its route
			_, limit, _ := strings.Cut(policies[1], `"`)
			policies[1] = name + `"` + limit
		}
		if policy := strings.Join(got.header.Values("RateLimit-Policy"), ", "); got.status != want.status || policy != strings.Join(policies, `, "`) {
			t.Errorf("%s: %d with %s, want %d with %s", call, got.status, policy, want.status, policies)
		}
	}
}

// A service whose limits cannot be read does not start.
func TestNoRulesFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	c := command("quickstart", "RULES="+path)
	defer killAfterPatience(c).Stop()
	output, err := c.CombinedOutput()
	if want := "RULES: " + path + ": cannot be read: no such file"; err == nil || !strings.Contains(string(output), want) {
		t.Errorf("%v, says %q, want %q in it", err, output, want)
	}
}
