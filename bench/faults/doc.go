// Package faults is what can happen to a service that limits access, done to real processes: its
// Redis is stopped, killed, cut off, slowed, full or not allowed to answer, and its callers send
// what they like. Each fault is a test, and has a figure.
//
// "make test" runs their short forms. "make chaos" runs the long ones and writes their figures into
// SECURITY.md.
package faults
