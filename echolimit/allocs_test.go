//go:build !race

package echolimit_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/internal/handlercost"
)

// The one allocation is that which echo needs to put a middleware around a handler. The values of
// headers are allocated for several calls at once.
func TestAllocations(t *testing.T) { handlercost.WantAllocs(t, measured(t), 1) }
