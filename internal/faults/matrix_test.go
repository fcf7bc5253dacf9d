package faults_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// matrixFile says what each entry point answers during each fault.
const matrixFile = "testdata/matrix.txt"

// expectation is what the matrix says of a fault.
type expectation struct {
	class, charged, log, advice string
	cells                       map[string][4]string // by entry points: answer, charged, log, metric
	may                         []string             // further lines of the log
}

// readMatrix reads the matrix, by the names of the faults.
func readMatrix(t *testing.T) map[string]*expectation {
	t.Helper()
	text, err := os.ReadFile(matrixFile)
	if err != nil {
		t.Fatal(err)
	}
	all, block, ended := make(map[string]*expectation), make(map[string]*expectation), false
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		columns := strings.Split(line, "|")
		for i := range columns {
			columns[i] = strings.TrimSpace(columns[i])
		}
		name, isFault := strings.CutPrefix(columns[0], "fault ")
		if !isFault {
			ended = true
			for fault, e := range block {
				e.note(t, fault, columns)
			}
			continue
		}
		if ended {
			clear(block)
			ended = false
		}
		e := &expectation{class: columns[1], charged: columns[2], log: columns[3], advice: columns[4], cells: make(map[string][4]string)}
		all[name], block[name] = e, e
	}
	return all
}

// note notes a line of the block of a fault.
func (e *expectation) note(t *testing.T, fault string, columns []string) {
	t.Helper()
	level, _, _ := strings.Cut(e.log, " ")
	stands := strings.NewReplacer("CLASS", e.class, "CHARGED", e.charged, "LOG", e.log, "LEVEL", level)
	point, only, some := strings.Cut(columns[0], " @ ")
	if some && only != fault {
		return
	}
	if line, ok := strings.CutPrefix(point, "may "); ok {
		e.may = append(e.may, stands.Replace(line))
		return
	}
	if len(columns) != 5 {
		t.Fatalf("%s: the line %q has %d columns, want 5", matrixFile, columns[0], len(columns))
	}
	var cell [4]string
	for i := range cell {
		cell[i] = stands.Replace(columns[i+1])
	}
	cell[3] = strings.Join(sorted(strings.Split(cell[3], ", ")), ", ")
	e.cells[point] = cell
}

// connection returns how the service connects: as a user whose rights and password a fault can change.
func (m *matrix) connection(sees *lookout) connection {
	if m.fault.onWire {
		return connection{"service", "old", m.site.dial}
	}
	return connection{"service", "old", sees.dial}
}

// cell is one entry point during one fault, in a process of its own.
type cell struct {
	t       *testing.T
	point   entryPoint
	site    *site
	client  redis.UniversalClient
	limiter *core.Limiter
	log     journal
	sees    lookout
	subject string
	within  time.Duration // the Timeout of its limiter and documents
	asker

	well  string // what it answers without a fault
	got   [4]string
	lines int // that were logged before the fault
}

// before, subject and after are the subjects that a cell asks about: without a fault, during it, and
// when it is over.
func (c *cell) before() string { return c.subject + "-before" }
func (c *cell) after() string  { return c.subject + "-after" }

// asker asks an entry point.
type asker struct {
	ask     func(subject string) (answer string)
	stop    func()                   // ends what runs in the background; nil: nothing
	again   func() error             // does, when the fault is over, what is needed to ask again; nil: nothing
	charged func(subject string) int // nil: nothing can be charged
}

// newCell prepares a cell, and asks once.
func (m *matrix) newCell(t *testing.T, point entryPoint, within time.Duration) *cell {
	c := &cell{t: t, point: point, site: m.site, subject: m.site.subject(t, len(m.cells)), within: within}
	c.client = m.site.connect(t, m.connection(&c.sees))
	var err error
	c.limiter, err = core.New(core.Options{Redis: c.client, Timeout: within, Logger: c.log.logger(), OnDecision: leaveDecision})
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, c.limiter.Close)
	c.asker = point.prepare(c)
	c.connect()
	c.well = c.ask(c.before())
	if strings.Contains(m.want(c)[2], "lost data") {
		c.sees.await(t, m.site.nodes[0].Addr())
	}
	c.lines = len(c.log.warnings(t))
	return c
}

// connect opens connections, so that a call finds one while work in the background has another.
func (c *cell) connect() {
	c.t.Helper()
	together(8, func(int) {
		for _, node := range c.site.clientsOf(c.client) {
			if err := node.Do(c.t.Context(), "blpop", "{nothing}", "0.05").Err(); err != nil && err != redis.Nil && !strings.HasPrefix(err.Error(), "MOVED") {
				c.t.Error(err)
			}
		}
	})
}

// awake ends the rest of a process that was prepared long ago. One that rests asks for marks first, and
// charges nothing if that gets no answer.
func (c *cell) awake() {
	_, err := c.limiter.MustCounter("awake", counted).Allow(context.Background(), "nobody")
	if err == nil {
		_, _, err = operate.New(c.limiter).Bans(context.Background(), "awake", "", 1) // reads all marks
	}
	if err != nil {
		c.t.Errorf("%s: %v", c.point.name, err)
	}
}

// question asks during the fault, and notes what came of it.
func (c *cell) question() {
	before, began := c.limiter.Stats(), time.Now()
	c.got[0] = c.ask(c.subject)
	if took := time.Since(began); took > patience {
		c.t.Errorf("%s: back after %v", c.point.name, took)
	}
	c.got[3] = moved(before, c.limiter.Stats())
}

// moved returns which counts of a limiter have grown: reasons of decisions, bills, and
// classes of errors.
func moved(before, after core.Stats) string {
	counts := make(map[string]int)
	for sign, s := range map[int]core.Stats{-1: before, 1: after} {
		for _, d := range s.Decisions {
			counts[string(d.Reason)] += sign * int(d.Count)
		}
		for _, costs := range s.Costs {
			counts["opened"] += sign * int(costs.Opened)
			counts["settled"] += sign * int(costs.Settled)
		}
		for class, n := range s.StoreErrors {
			counts[string(class)] += sign * int(n)
		}
	}
	var grown []string
	for name, n := range counts {
		if n > 0 {
			grown = append(grown, name)
		}
	}
	return strings.Join(sorted(grown), ", ")
}

// matrix runs all entry points through one fault.
type matrix struct {
	*expectation
	before *expectation // without a fault
	site   *site
	fault  matrixFault
	cells  []*cell
}

// Each entry point answers during each fault as the matrix says, and as before when the fault is
// over. The short form tries each fault on one deployment.
func TestMatrix(t *testing.T) {
	expected := readMatrix(t)
	before := expected["none"]
	for _, f := range matrixFaults {
		e := expected[f.name]
		if e == nil {
			t.Fatalf("%s does not have the fault %q", matrixFile, f.name)
		}
		delete(expected, f.name)
		for i, deployment := range f.deployments() {
			if i > 0 && !long() {
				break
			}
			t.Run(f.name+"/"+deployment, func(t *testing.T) {
				t.Parallel()
				m := &matrix{expectation: e, before: before, site: newSite(t, deployment), fault: f}
				m.run(t)
			})
		}
	}
	for name := range expected {
		t.Errorf("%s has the fault %q, which is not tried", matrixFile, name)
	}
}

// run asks all entry points while the fault lasts, and compares what came of it with the matrix.
func (m *matrix) run(t *testing.T) {
	within := patience
	if m.fault.hangs {
		within = hangTimeout
	}
	for _, p := range entryPoints {
		m.cells = append(m.cells, m.newCell(t, p, within))
	}
	m.each((*cell).awake)
	m.fault.inject(t, m)
	m.each((*cell).question)
	m.fault.end(t, m)
	m.each(func(c *cell) { c.goesOn(m) })
	m.site.awaitQuiet(t)
	m.site.awaitWhole(t, m.site.judge)
	for _, c := range m.cells {
		c.compare(m)
	}
	if len(m.expectation.cells) != len(m.cells) {
		t.Errorf("%s has %d lines of this fault, want %d", matrixFile, len(m.expectation.cells), len(m.cells))
	}
}

// each runs a function for all cells at once.
func (m *matrix) each(do func(*cell)) {
	together(len(m.cells), func(i int) { do(m.cells[i]) })
}

// goesOn waits until the entry point answers as before the fault, and closes the process.
func (c *cell) goesOn(m *matrix) {
	var answer string
	var err error
	c.site.awaitWhole(c.t, c.client)
	if !redistest.WaitUntil(func() bool {
		if c.again != nil {
			if err = c.again(); err != nil {
				return false
			}
		}
		answer = c.ask(c.after())
		return answer == c.well
	}, patience) {
		c.t.Errorf("%s: after the fault it answers %q (%v), want %q", c.point.name, answer, err, c.well)
	}
	if line := m.want(c)[2]; line != "" && !redistest.WaitUntil(func() bool {
		if slices.Contains(c.said(m), line) {
			return true
		}
		c.ask(c.after()) // a loss is found out by calls
		time.Sleep(100 * time.Millisecond)
		return false
	}, patience) {
		c.t.Errorf("%s: never logged: %s", c.point.name, line)
	}
	if c.stop != nil {
		c.stop()
	}
	c.limiter.Close()
	_ = c.client.Close()
}

// compare compares what came of the question with the matrix.
func (c *cell) compare(m *matrix) {
	want := m.want(c)
	c.got[1] = "-"
	if c.charged != nil {
		c.got[1] = fmt.Sprint(c.charged(c.subject))
	}
	if kept := m.before.cells[c.point.name][1]; c.charged != nil && !m.fault.forgets && fmt.Sprint(c.charged(c.before())) != kept {
		c.t.Errorf("%s: %d are left of what was charged before, want %s", c.point.name, c.charged(c.before()), kept)
	}
	if want[1] == "0-1" && (c.got[1] == "0" || c.got[1] == "1") {
		c.got[1] = want[1]
	}
	said := slices.DeleteFunc(c.said(m), func(line string) bool { return line != want[2] && slices.Contains(m.may, line) })
	c.got[2] = strings.Join(said, ", ")
	c.got[0] = strings.Join(slices.Compact(strings.Split(m.stands(c.got[0]), ", ")), ", ")
	c.got[3] = strings.Join(sorted(strings.Split(m.stands(c.got[3]), ", ")), ", ")
	if c.got != want {
		c.t.Errorf("the matrix says\n%-25s | %s\nbut it is\n%-25s | %s", c.point.name, strings.Join(want[:], " | "), c.point.name, strings.Join(c.got[:], " | "))
	}
	once := 0
	for _, w := range c.log.warnings(c.t)[c.lines:] {
		if w.Level+" "+w.Msg == want[2] {
			once++
		}
		if w.Level+" "+w.Msg == m.log && !strings.Contains(w.Change, m.advice) {
			c.t.Errorf("%s: the log advises %q, want %q", c.point.name, w.Change, m.advice)
		}
	}
	if strings.Contains(want[2], "the present ones stay in force") && once != 1 {
		c.t.Errorf("%s: logged %d times, want once: %s", c.point.name, once, want[2])
	}
}

// stands returns a text with the class of the fault in place of those that stand for it. A breaker that
// has opened stands for the class at which it opens, and so does a call that waited for an earlier one.
// Where nobody answers, a new connection hears nothing either. A Ring takes servers that refuse its
// password for unreachable after a while.
func (m *matrix) stands(text string) string {
	var also []string
	switch m.class {
	case "", string(core.StoreRefused), string(core.StoreForeignValue):
	default:
		also = append(also, string(core.StoreBreakerOpen), m.class, string(core.StoreNoConnection), m.class)
	}
	if _, isRing := m.site.judge.(*redis.Ring); m.fault.hangs || isRing && m.fault.name == "wrong password" {
		also = append(also, string(core.StoreUnreachable), m.class)
	}
	return strings.NewReplacer(also...).Replace(text)
}

// said returns the different warnings since the fault began, sorted.
func (c *cell) said(m *matrix) (all []string) {
	for _, w := range c.log.warnings(c.t)[c.lines:] {
		line := w.Level + " " + w.Msg
		if w.Class != m.class && m.stands(w.Class) == m.class {
			level, _, _ := strings.Cut(m.log, " ")
			if line = level + " " + w.Msg; w.Msg == "the store does not answer" {
				line = m.log
			}
		}
		all = append(all, line)
	}
	return sorted(all)
}

// sorted sorts texts, and returns each once.
func sorted(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// want returns what the matrix says of a cell.
func (m *matrix) want(c *cell) [4]string { return m.expectation.cells[c.point.name] }

// hangTimeout is the Timeout of limiters whose servers do not answer. All others have more time than
// a busy machine needs.
const hangTimeout = 2 * time.Second
