// Package traces holds what each algorithm does, as stories that a person can read, and plays them.
// It is for tests.
//
// A file NAME.txt is one algorithm. A line that begins with == is a fact; the lines below it show
// that fact on a counter that nobody has used:
//
//	== A refused call charges nothing.
//	limit 3/10s
//	  0s  take 2  passes   left 1  reset 10.3125s  key until 10.313s
//	  1s  take 2  refused  left 1  reset 9.3125s   retry 9.3125s      key until 10.313s
//
// A step has a time since the beginning, an operation, and what is seen from outside of the store;
// two spaces or more end each of them. If a time is earlier than the one before, the clock stepped
// back. The beginning is that of the year 2100, UTC, or what a line "start" says. Lines between the
// steps change what a call asks for: its limit, and how large a debt may be.
//
// An answer has the permits that are left after the call, the time until the counter equals a fresh
// one, the time after which a refused call passes, and the time at which the key of the counter
// expires in Redis (that of a sliding window may live for 1/32 of it longer). Of an operation that
// gives back or forgets, it has what a look shows afterwards. After a step about pauses, it has
// what a call that goes out finds.
//
// The test has a flag -update, which writes the answers of Redis into the files. Check each by
// arithmetic before you keep it.
package traces
