package core_test

import (
	"runtime"
)

// heap returns how much memory is in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// heapInUse returns the memory that is in use.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // sync.Pool gives up its objects in two steps
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
