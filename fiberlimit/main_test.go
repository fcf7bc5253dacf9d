package fiberlimit_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestMain(m *testing.M) {
	leakcheck.Main(m,
		// fasthttp writes down the date every second, for all of its servers, from the first one
		// on.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// The cleaner of a server that has ended sees that when it has slept, for 10 s.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}
