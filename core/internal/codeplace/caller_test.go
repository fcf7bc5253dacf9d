package codeplace_test

import (
	"runtime"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/codeplace"
)

// Tests call this module as services do.
func TestOfCaller(t *testing.T) {
	once := codeplace.Once()
	for range 2 {
		if got := once(); got != "core/internal/codeplace/caller_test.go:14" {
			t.Error(got)
		}
	}
	var callers [16]uintptr
	if got := codeplace.OfCallers(callers[:runtime.Callers(1, callers[:])]); got != "core/internal/codeplace/caller_test.go:19" {
		t.Error(got)
	}
	if got := codeplace.OfCallers(nil); got != "" {
		t.Errorf("no caller: %s", got)
	}
}
