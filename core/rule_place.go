package core

import (
	"reflect"
	"runtime"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/codeplace"
)

// module is the path of this module, with a slash behind it.
var module = strings.TrimSuffix(reflect.TypeFor[Limiter]().PkgPath(), "core")

// callerPlace returns the line of the service's code that called this module, as path:line within its
// module, or "" if there is none.
func callerPlace() string {
	var callers [32]uintptr
	return placeOf(callers[:runtime.Callers(2, callers[:])])
}

// placeOf returns the first line of the service's code among these callers, or "".
func placeOf(callers []uintptr) string {
	frames := runtime.CallersFrames(callers)
	for {
		frame, more := frames.Next()
		if frame.Function != "" && !isOurs(&frame) {
			return codeplace.OfFrame(&frame)
		}
		if !more {
			return ""
		}
	}
}

// callerOnce returns a function that returns callerPlace. It looks for the place once, because that
// takes longer than everything else about a Guard.
func callerOnce() func(rule string) string {
	place := ""
	return func(string) string {
		if place == "" {
			place = callerPlace()
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
