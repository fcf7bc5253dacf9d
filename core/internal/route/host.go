package route

import (
	"net"
	"strings"
)

// Host returns a host as rules count it: in lower case, without a port, brackets and a trailing dot,
// because a caller could otherwise spell the same host in several ways.
func Host(sent string) string {
	host := strings.ToLower(sent)
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}
