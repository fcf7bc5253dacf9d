// Package faults tests what can go wrong in a service that limits access, with real processes.
// Redis is stopped, killed, cut off, slowed, filled, or kept from answering, and callers send
// hostile requests. Each fault has a test and a figure.
//
// "make check" runs their short forms. "make chaos" runs the long ones, and writes their figures into
// faults.tsv and what holds into FAULTS.md.
package faults
