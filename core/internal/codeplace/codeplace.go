// Package codeplace names lines of a service's code, without the folders of the machine that built
// it.
package codeplace

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// Of returns the line of a function as path:line. The path begins at the root of the service's
// module, as in shop/routes.go:12, or with the name of another module.
func Of(function, file string, line int) string {
	return fmt.Sprintf("%s:%d", path.Join(folder(packageOf(function)), filepath.Base(file)), line)
}

// OfFrame is Of for a frame of a stack.
func OfFrame(frame *runtime.Frame) string { return Of(frame.Function, frame.File, frame.Line) }

// packageOf returns the import path of a function's package, which may be main.
func packageOf(function string) string {
	last := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[last:], ".")
	if plain, err := url.PathUnescape(name); err == nil { // the linker escapes dots
		name = plain
	}
	return function[:last] + strings.TrimSuffix(name, "_test")
}

// folder returns the folder of a package.
func folder(importPath string) string {
	built := build()
	if importPath == "main" {
		importPath = built.Path
	}
	switch within, ok := strings.CutPrefix(importPath, built.Main.Path+"/"); {
	case importPath == built.Main.Path || importPath == "command-line-arguments":
		return ""
	case ok:
		return within
	}
	return importPath
}

// build returns how the service was built, as far as that is known.
var build = sync.OnceValue(func() *debug.BuildInfo {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info
	}
	return new(debug.BuildInfo)
})
