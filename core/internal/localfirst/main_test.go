package localfirst_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/limittest"
)

func TestMain(m *testing.M) { limittest.Main(m) }
