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

// faults are in the order of the page. A test reports the figure of each.
var faults = []fault{
	{stoppedFault, backInTime},
	{killedFault, "at most the limit for each life of the server is let in, and nobody banned or blocked, also with FailOpen; no panic, no goroutine left"},
	{scriptFlushFault, "no error to any caller, and every count exact"},
	{movedSlot, "no error to any caller, and every count exact"},
	{flushAllFault, "no error to any caller, and at most the limit for each flush is let in"},
	{poolFault, "every call is decided"},
	{manyKeysFault, "every key is gone after two windows at most"},
	{exampleFault, "no leak (goroutines, heap, connections), and nobody too many let in"},
	{clockBackFault, "nothing is minted, and nobody blocked for longer than a window"},
	{clockForwardFault, "at most the limit is let in once more"},
	{killedMaster, "each policy answers meanwhile, then right limits again; other shards' calls as fast as before"},
	{stoppedMaster, "other shards' calls as fast as before; each call back by its deadline, and charged at most once"},
	{sentinelKilled, failoverHolds},
	{sentinelPlanned, failoverHolds},
	{ringServer, "each policy answers meanwhile; keys of the other servers are counted on; at most one Max more for each change"},
	{oneOfTwoIll, "each rule's policy answers for its part; what a refused call was charged on the other shard is given back"},
	{callersLeave, "none of them reaches the handler uncounted"},
	{floodOfKeys, "memory within the bound, a limited busy key still limited"},
	{oversized, "nothing injected, nothing aliased, nothing unlimited"},
	{hostileNames, "nothing injected, nothing aliased, nothing unlimited"},
	{addressTricks, "the same client in gin, echo v4, fiber v2, net/http and gRPC"},
	{pathTricks, "no way round a rule, no second counter for one route, no exception that should not hold"},
	{memberFault, "each threshold is reported at most once; Top has the refusals of the others; bans of subjects that still call are listed"},
	{triedTokens, "the rule by IP before it stops them; Identify is asked at most once a call"},
}

// These hold during several faults.
const (
	backInTime    = "every call is back by its deadline, and charged at most once"
	failoverHolds = "each policy answers meanwhile, then right limits again, without a restart of the service"
)

func init() {
	for _, s := range networkFaults {
		faults = append(faults, fault{s.fault, s.holds()})
	}
}

// fault is something that goes wrong.
type fault struct {
	name  string // what happens
	holds string // what must hold nevertheless
}

// figures are the results of this run.
var figures struct {
	sync.Mutex
	of map[string]string // by the fault's name
}

// long reports whether to run the long forms, whose figures go into faults.tsv.
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
		if err := writeFigures(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// The files that a long run writes.
const pageFile, figuresFile = "FAULTS.md", "faults.tsv"

func writeFigures() error {
	rows := "fault\tfigure\n"
	for _, f := range faults {
		figure, ok := figures.of[f.name]
		if !ok {
			return fmt.Errorf("the fault %q has no figure, so %s is left as it was", f.name, figuresFile)
		}
		rows += f.name + "\t" + figure + "\n"
	}
	if err := os.WriteFile(figuresFile, []byte(rows), 0o644); err != nil {
		return err
	}
	return os.WriteFile(pageFile, []byte(faultsPage()), 0o644)
}

// faultsPage returns FAULTS.md. Faults during which the same holds share a line.
func faultsPage() string {
	var holds []string
	during := make(map[string][]string)
	for _, f := range faults {
		if during[f.holds] == nil {
			holds = append(holds, f.holds)
		}
		during[f.holds] = append(during[f.holds], f.name)
	}
	text := `# Faults, and what holds during them

Each is tested on real processes: redis-server, clusters, Sentinel, servers of five frameworks,
and clients that keep to no rule. [The matrix](` + matrixFile + `) has the answer of each entry point
during each fault of Redis. "make chaos" does the following at length, and writes this page and the
figures, which are in [` + figuresFile + "](" + figuresFile + ").\n\n| faults | what holds |\n|---|---|\n"
	for _, h := range holds {
		text += "| " + strings.Join(during[h], "; ") + " | " + h + " |\n"
	}
	return text
}

// The page and the rows of the last long run have the faults that are tested.
func TestPageIsOfTheseFaults(t *testing.T) {
	if text, err := os.ReadFile(pageFile); string(text) != faultsPage() {
		t.Errorf("%s (%v) is not what make chaos writes:\n%s", pageFile, err, faultsPage())
	}
	rows, err := os.ReadFile(figuresFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(rows), "\n"), "\n")[1:]
	for i, f := range faults {
		if i >= len(lines) || !strings.HasPrefix(lines[i], f.name+"\t") {
			t.Fatalf("line %d of %s is not of the fault %q", i+2, figuresFile, f.name)
		}
	}
	if len(lines) != len(faults) {
		t.Errorf("%s has %d lines, want %d", figuresFile, len(lines), len(faults))
	}
}
