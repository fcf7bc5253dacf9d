// Package harness measures limiters: servers of its own to measure on, a loop that neither
// allocates nor locks, and the arithmetic behind a table. It knows no limiter.
package harness
