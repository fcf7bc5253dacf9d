// Package harness measures limiters. It starts the servers, calls a limiter in a loop that neither
// allocates nor locks, and does the arithmetic for the tables. It knows nothing about any
// particular limiter.
package harness
