package main

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestMain(m *testing.M) {
	leakcheck.Main(m,
		// Nothing ends the goroutines that clean the stores of ulule and of fiber's limiter.
		goleak.IgnoreTopFunction("github.com/ulule/limiter/v3/drivers/store/memory.(*cleaner).Run"),
		goleak.IgnoreTopFunction("github.com/gofiber/fiber/v2/internal/memory.(*Storage).gc"),
		goleak.IgnoreTopFunction("github.com/gofiber/fiber/v3/internal/memory.(*Storage).gc"),
		goleak.IgnoreTopFunction("github.com/accesslimit/accesslimit/bench/compare.stopOnSignal.func1"), // until the program ends
		// fiber reads the clock once a second for the whole process.
		goleak.IgnoreTopFunction("github.com/gofiber/fiber/v2/utils.StartTimeStampUpdater.func1.1"),
		goleak.IgnoreTopFunction("github.com/gofiber/fiber/v2/internal/memory.New.StartTimeStampUpdater.func1.1"), // the same, inlined
		goleak.IgnoreTopFunction("github.com/gofiber/utils/v2.StartTimeStampUpdater.func1"),
	)
}
