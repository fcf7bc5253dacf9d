package core

import "net/netip"

// checkSubject checks a subject that an operator passes. A bare address is likely to be a mistake:
// without ip: it is not the subject by which rules count that address. An address in another
// grouping is not one, because handles may count by any.
func checkSubject(name, subject string) error {
	if subject == "" {
		return noSubject(name)
	}
	if _, err := netip.ParseAddr(subject); err == nil {
		return &RuleError{
			Rule: name, Field: "subject", Value: subject,
			Why: "is a bare address, but rules by IP count by another subject: use core.IPSubject(addr), or limiter.IPSubject(addr) with Options.ClientIP.IPv6Prefix",
		}
	}
	return nil
}

func noSubject(name string) error {
	return &RuleError{Rule: name, Field: "subject", Value: "", Why: "must say who is limited, as in user:alice"}
}
