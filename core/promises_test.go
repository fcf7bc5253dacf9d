package core_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/limittest"
)

// Every promise holds on every engine.
func TestPromises(t *testing.T) {
	for _, engine := range limittest.Engines(t) {
		t.Run(engine.Name, func(t *testing.T) { limittest.Promises(t, engine) })
	}
}
