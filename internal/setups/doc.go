// Package setups tests how Redis may be set up, on real servers: with each right of a user missing,
// with connections that fail in every way, with a version that is too old, and with lost data. "make
// check" runs it.
package setups
