//go:build !race

package ginlimit_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/internal/handlercost"
)

// The values of headers are allocated for several calls at once.
func TestAllocations(t *testing.T) { handlercost.WantAllocs(t, measured(t), 0) }
