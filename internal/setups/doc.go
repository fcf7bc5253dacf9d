// Package setups tests how Redis may be set up, on real servers: with each right of a user missing,
// with connections that fail in every way, as a version that is too old, and as one that loses its
// data. "make check" runs it.
package setups
