package faults_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

// The table's lines, in their order. A test reports the figures of its own lines.
var faults = []fault{
	{stoppedFault, "every call is back by its deadline, and charged at most once; who left before the send never is"},
	{killedFault, "no panic, no goroutine left, and at most the limit for each life of the server is let in"},
	{lostReplyFault, "the call is charged once, and answered by the rule's policy"},
	{scriptFlushFault, "no error to any caller, and no count lost"},
	{flushAllFault, "no error to any caller, and at most the limit for each flush is let in"},
	{foreignFault, "calls of that key get their rule's policy, all others are decided"},
	{poolFault, "every call is decided, and exactly"},
	{manyKeysFault, "every key is gone after two windows at most"},
	{exampleFault, "no leak (goroutines, heap, connections), and nobody too many let in"},
	{clockBackFault, "nothing is minted, and nobody blocked for longer than a window"},
	{clockForwardFault, "at most the limit is let in once more"},
	{killedMaster, "each policy answers meanwhile, nobody waits past the deadline; then right limits again; other shards' calls as fast as before, all decided"},
	{movedSlot, "no error to any caller, every count exact, for all algorithms and for calls of several counters"},
	{stoppedMaster, "other shards' calls as fast as before, all decided; nobody waits past the deadline; each call charged at most once"},
	{sentinelKilled, "each policy answers meanwhile, nobody waits past the deadline; then right limits again, without a restart of the service"},
	{sentinelPlanned, "the same"},
	{demotedMaster, "the same; what was counted before still counts"},
	{ringServer, "each policy answers meanwhile, nobody waits past the deadline; keys of the other servers are counted on as before; at most one Max more for each change"},
	{oneOfTwoIll, "each rule's policy answers for its part; what a refused call was charged on the shard that is well is given back"},
	{callersLeave, "none of them reaches the handler uncounted"},
	{floodOfKeys, "memory within the bound, a limited busy key still limited"},
	{oversized, "nothing injected, nothing aliased, nothing unlimited"},
	{hostileNames, "nothing injected, nothing aliased, nothing unlimited"},
	{addressTricks, "the same client in all five frameworks: the design's"},
	{pathTricks, "no way round a rule, no second counter for one route, no exception that should not hold"},
	{operatorFault, "every answer is back by its deadline, and right; calls too, which stay exact; what was acknowledged holds; all recovers without a restart"},
	{memberFault, "each threshold is reported at most once; Top has the refusals of the others, within 10 %; bans of subjects that still call are listed"},
	{bansFault, "every process that knows the ban or the block refuses, under every policy; nobody else is refused; the first answer of the empty Redis ends it"},
	{triedTokens, "the rule by IP before it stops them; Identify is asked at most once a call"},
}

func init() {
	for _, s := range networkFaults {
		faults = append(faults, fault{s.fault, s.holds()})
	}
	for _, a := range storeFaults {
		faults = append(faults, fault{a.fault, "the rule's policy answers, and without a restart decides again within 2 s of the recovery"})
	}
}

// fault is one line of the table in FAULTS.md.
type fault struct {
	name  string // what happens
	holds string // what must hold nevertheless
}

// figures are the results of this run.
var figures struct {
	sync.Mutex
	of map[string]string // by the fault's name
}

// long reports whether to run the long forms, whose figures go into FAULTS.md.
func long() bool { return os.Getenv("ACCESSLIMIT_CHAOS") != "" }

// report records the figure of a fault.
func report(t *testing.T, name, format string, args ...any) {
	t.Helper()
	for _, f := range faults {
		if f.name == name {
			figures.Lock()
			defer figures.Unlock()
			if figures.of == nil {
				figures.of = make(map[string]string)
			}
			figures.of[name] = fmt.Sprintf(format, args...)
			t.Logf("%s: %s", name, figures.of[name])
			return
		}
	}
	t.Errorf("the table has no fault %q", name)
}

func TestMain(m *testing.M) {
	if addr := os.Getenv(memberOf); addr != "" {
		if err := beMember(addr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	leakcheck.Main(written{m},
		// Toxiproxy's links can keep running with unsent data after their connection has ended.
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		// Fiber's server keeps the time of its Date header for ever, and a worker of its pool for
		// ten seconds.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

// written runs the tests, and then writes the figures of a long run if all tests passed.
type written struct{ *testing.M }

// Run runs the tests.
func (w written) Run() (code int) {
	code = w.M.Run()
	if code == 0 && long() {
		if err := writeTable("FAULTS.md"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// The table stands between these lines of FAULTS.md.
const begin, end = "<!-- faults: written by \"make chaos\" -->\n", "<!-- end of faults -->"

func writeTable(path string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s has no place for the table: the lines %s and %s", path, strings.TrimSpace(begin), end)
	}
	var table strings.Builder
	table.WriteString("| fault | holds | figure |\n|---|---|---|\n")
	for _, f := range faults {
		figure, ok := figures.of[f.name]
		if !ok {
			return fmt.Errorf("the fault %q has no figure, so the table is left as it was", f.name)
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", f.name, f.holds, figure)
	}
	return os.WriteFile(path, []byte(before+begin+table.String()+end+after), 0o644)
}
