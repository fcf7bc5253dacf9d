package rivals

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestMain(m *testing.M) {
	leakcheck.Main(m,
		// The goroutines that clean the stores of ulule and of fiber's limiter never end:
		// nothing ends them.
		goleak.IgnoreTopFunction("github.com/ulule/limiter/v3/drivers/store/memory.(*cleaner).Run"),
		goleak.IgnoreTopFunction("github.com/gofiber/fiber/v2/internal/memory.(*Storage).gc"),
		goleak.IgnoreTopFunction("github.com/gofiber/fiber/v3/internal/memory.(*Storage).gc"),
		// fiber looks at the clock once a second, for all who ask it.
		goleak.IgnoreTopFunction("github.com/gofiber/fiber/v2/utils.StartTimeStampUpdater.func1.1"),
		goleak.IgnoreTopFunction("github.com/gofiber/fiber/v2/internal/memory.New.StartTimeStampUpdater.func1.1"), // the same, inlined
		goleak.IgnoreTopFunction("github.com/gofiber/utils/v2.StartTimeStampUpdater.func1"),
	)
}
