package promise_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/promise"
)

// Every promise holds on every engine.
func TestPromises(t *testing.T) {
	for _, engine := range promise.Engines(t) {
		t.Run(engine.Name, func(t *testing.T) { promise.Run(t, engine) })
	}
}

func TestMain(m *testing.M) { leakcheck.Main(m) }
