package faults_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/adaptertest"
)

const (
	addressTricks = "address tricks: mapped IPv4, zones, NAT64, 6to4, leading zeros, ports, `unknown`, obfuscated and quoted identifiers, mixed lines"
	pathTricks    = "path tricks: letter case, slashes, dots, escapes, `;`, overlong and wide letters, absolute forms, methods, overriding headers"
	hostileNames  = "NUL, `}{`, invalid UTF-8, CR LF and the like in users, header values, cookies, subjects, names and errors"
)

// TestTricks tries the tricks of the adapters' own tests on all five frameworks, and reports the
// figures. The short form tries one framework only, to see that there are figures, because the
// adapters' own tests try the rest.
func TestTricks(t *testing.T) {
	var all adaptertest.Tricks
	tried, addresses, served := frameworks(usual), 800, 200
	if !long() {
		tried, addresses, served = tried[:1], 160, 50
	}
	for _, f := range tried {
		t.Run(f.name, func(t *testing.T) {
			of := adaptertest.RunTricks(t, f.Adapter)
			all.Addresses += of.Addresses
			all.Requests += of.Requests
			all.Served += of.Served
			all.Names += of.Names
		})
	}
	if t.Failed() {
		return
	}
	if all.Addresses < addresses || all.Served < served {
		t.Errorf("too few tricks: %+v", all)
	}
	report(t, addressTricks, "%d calls to five frameworks, each counted for the caller that the design names", all.Addresses)
	report(t, pathTricks, "%d requests to four frameworks, of which %d would reach a handler: none does", all.Requests, all.Served)
	report(t, hostileNames, "%d callers in five frameworks: each has one counter of its own, keys under 200 bytes, every log line and reply well formed", all.Names)
}
