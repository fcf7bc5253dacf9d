package console_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestMain(m *testing.M) {
	leakcheck.Main(m,
		// fasthttp updates the date every second for all of its servers, once the first one has
		// started.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// The cleaner of a server that has ended notices that only after sleeping for 10 s.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}
