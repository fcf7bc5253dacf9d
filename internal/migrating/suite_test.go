package migrating

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	_ "github.com/stretchr/testify/require" // which the tests of redis_rate import

	"github.com/accesslimit/accesslimit/internal/redistest"
)

const redisRateModule = "github.com/go-redis/redis_rate/v10"

// attempts is how often a test of redis_rate may fail: they compare times to 10 ms, which a busy
// machine cannot always keep.
const attempts = 20

// The tests, the example and the benchmarks of redis_rate pass on redisrate, all of them. They are
// read where Go keeps the module; the import and the address of Redis are replaced.
func TestSuiteOfRedisRate(t *testing.T) {
	program := filepath.Join(t.TempDir(), "suite")
	build(t, suiteOn(t, redistest.Start(t).Addr()), "test", "-c", "-vet=off", "-o", program)
	names := strings.Fields(run(t, program, "-test.list=."))
	if len(names) < 8 {
		t.Errorf("the suite has %v", names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			output, err := []byte(nil), error(nil)
			for range attempts {
				output, err = exec.Command(program, "-test.run=^"+name+"$", "-test.bench=^"+name+"$", "-test.benchtime=100x").CombinedOutput()
				if err == nil {
					return
				}
			}
			t.Errorf("%v\n%s", err, output)
		})
	}
}

// suiteOn returns the test files of redis_rate, by their names, changed to test redisrate on a server.
func suiteOn(t *testing.T, server string) map[string]string {
	t.Helper()
	dir := strings.TrimSpace(run(t, "go", "list", "-m", "-f", "{{.Dir}}", redisRateModule))
	found, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, file := range found {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.ReplaceAll(string(text), strconv.Quote(redisRateModule), `redis_rate "github.com/accesslimit/accesslimit/redisrate"`)
		files[filepath.Base(file)] = regexp.MustCompile(`"(localhost)?:6379"`).ReplaceAllLiteralString(changed, strconv.Quote(server))
	}
	return files
}

// build runs a go command on a package of these files, which exists for the compiler only.
func build(t *testing.T, files map[string]string, command ...string) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	replace, dir := make(map[string]string), t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(here, "made", name)] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "go", append(command, "-overlay", file, "./made")...)
}

// run returns the output of a program that must succeed.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	output, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, output)
	}
	return string(output)
}
