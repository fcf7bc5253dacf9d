package faults_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// journal holds what a limiter logged, as JSON.
type journal struct {
	mu    sync.Mutex
	lines []string
}

// Write implements io.Writer. A handler of slog's writes each line at once.
func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, string(line))
	return len(line), nil
}

// logger returns a logger that writes to the journal.
func (j *journal) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(j, nil)) }

// warnings returns the lines of level WARN and above.
func (j *journal) warnings(t *testing.T) (all []warning) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, line := range j.lines {
		var w warning
		if err := json.Unmarshal([]byte(line), &w); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		w.Msg = strings.TrimPrefix(w.Msg, "accesslimit: ")
		if w.Level != "INFO" {
			all = append(all, w)
		}
	}
	return all
}

// warning is a log line for operators.
type warning struct{ Level, Msg, Class, Change string }

// complaint is a log line about calls that Redis did not answer.
type complaint struct {
	Level, Class, Change, Policy, Error string
	Calls                               int
}

// complaints returns the lines about failures of a class.
func (j *journal) complaints(t *testing.T, class core.StoreErrorClass) (all []complaint) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, line := range j.lines {
		var c complaint
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if c.Class == string(class) {
			all = append(all, c)
		}
	}
	return all
}

// wantOnce checks that the log advises the change, and only once for each policy, however many
// calls failed within a minute.
func (j *journal) wantOnce(t *testing.T, class core.StoreErrorClass, change string) {
	t.Helper()
	said := make(map[string]int)
	for _, c := range j.complaints(t, class) {
		if said[c.Policy]++; said[c.Policy] > 1 {
			t.Errorf("%+v is said %d times within a minute", c, said[c.Policy])
		}
		// On a busy machine, a call that waits for its turn may give up before the one that keeps it waiting.
		if noTurn := strings.Contains(c.Error, "no turn came in time"); !strings.Contains(c.Change, change) && !noTurn {
			t.Errorf("%+v, want it to say %q", c, change)
		}
		if somebodyHasTo := class == core.StoreRefused || class == core.StoreForeignValue; somebodyHasTo != (c.Level == "ERROR") {
			t.Errorf("%+v is at the wrong level", c)
		}
	}
}

// wantAll checks that the log, including the lines of Close, reports this many calls in all.
func (j *journal) wantAll(t *testing.T, class core.StoreErrorClass, calls int) {
	t.Helper()
	told := 0
	for _, c := range j.complaints(t, class) {
		told += c.Calls
	}
	if told != calls {
		t.Errorf("the log tells of %d calls of class %s, Stats of %d", told, class, calls)
	}
}
