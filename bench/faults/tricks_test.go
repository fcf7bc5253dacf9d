package faults_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/limittest"
)

const (
	addressTricks = "address tricks: mapped IPv4, zones, NAT64, 6to4, leading zeros, ports, `unknown`, obfuscated and quoted identifiers, mixed lines"
	pathTricks    = "path tricks: letter case, slashes, dots, escapes, `;`, overlong and wide letters, absolute forms, methods, overriding headers"
	hostileNames  = "NUL, `}{`, invalid UTF-8, CR LF and the like in users, header values, cookies, subjects, names and errors"
)

// TestTricks tries on all five frameworks what their adapters' own tests try, and has the figures.
func TestTricks(t *testing.T) {
	var all limittest.Tricks
	for _, f := range frameworks(usual) {
		t.Run(f.name, func(t *testing.T) {
			tried := limittest.RunTricks(t, f.Adapter)
			all.Addresses += tried.Addresses
			all.Requests += tried.Requests
			all.Served += tried.Served
			all.Names += tried.Names
		})
	}
	if t.Failed() {
		return
	}
	if all.Addresses < 800 || all.Served < 200 {
		t.Errorf("too few tricks: %+v", all)
	}
	report(t, addressTricks, "%d calls to five frameworks, each counted for the caller that the design names", all.Addresses)
	report(t, pathTricks, "%d requests to four frameworks, of which %d would reach a handler: none does", all.Requests, all.Served)
	report(t, hostileNames, "%d callers in five frameworks: each has one counter of its own, keys under 200 bytes, every log line and reply well formed", all.Names)
}
