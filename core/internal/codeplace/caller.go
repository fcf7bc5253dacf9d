package codeplace

import (
	"reflect"
	"runtime"
	"strings"
)

// module is the path of this module, with a slash behind it.
var module = strings.TrimSuffix(reflect.TypeFor[inModule]().PkgPath(), "core/internal/codeplace")

type inModule struct{}

// OfCaller returns the line of the service's code that called this module, or "" if there is none.
func OfCaller() string {
	var callers [32]uintptr
	return OfCallers(callers[:runtime.Callers(2, callers[:])])
}

// OfCallers returns the first line of the service's code among these callers, or "".
func OfCallers(callers []uintptr) string {
	frames := runtime.CallersFrames(callers)
	for {
		frame, more := frames.Next()
		if frame.Function != "" && !isOurs(&frame) {
			return OfFrame(&frame)
		}
		if !more {
			return ""
		}
	}
}

// Once returns a function that returns OfCaller. It determines the line only once, because that
// takes longer than everything else about a set of rules.
func Once() func() string {
	place := ""
	return func() string {
		if place == "" {
			place = OfCaller()
		}
		return place
	}
}

// isOurs reports whether a frame is the code of this module, except its tests and examples, which
// call it as services do.
func isOurs(frame *runtime.Frame) bool {
	within, ok := strings.CutPrefix(frame.Function, module)
	return ok && !strings.HasPrefix(within, "examples/") && !strings.HasSuffix(frame.File, "_test.go")
}
