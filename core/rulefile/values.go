package rulefile

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/terms"
)

// wrongPlan returns what is wrong with the text of a limit of a plan, or "".
func wrongPlan(text string) string {
	_, err := core.ParseLimit(text)
	if err == nil {
		return ""
	}
	return why(err)
}

// wrongLimit returns what is wrong with the text of any other limit, or "".
func wrongLimit(text string) string {
	limit, err := core.ParseLimit(text)
	var wrong *core.RuleError
	switch {
	case limit == core.Unlimited:
		return "is for plans only: a rule has a limit"
	case errors.As(err, &wrong) && wrong.Code == "limit_form":
		return "must be like " + terms.RuleForms
	}
	return wrongPlan(text)
}

// limitOf returns the limit of a checked text.
func limitOf(text string) core.Limit {
	limit, _ := core.ParseLimit(text)
	return limit
}

// why returns the reason in an error of core about a value.
func why(err error) string {
	var wrong *core.RuleError
	if errors.As(err, &wrong) {
		return wrong.Why
	}
	return err.Error()
}

// modeOf returns the mode of a text.
func modeOf(text string) (m core.Mode, err error) {
	err = m.UnmarshalText([]byte(text))
	return m, err
}

func wrongMode(text string) string {
	if _, err := modeOf(text); err != nil {
		return why(err) + didYouMean(text, []string{"enforce", "soft", "dry_run"})
	}
	return ""
}

// storePolicyOf returns the store policy of a text.
func storePolicyOf(text string) (p core.StorePolicy, err error) {
	err = p.UnmarshalText([]byte(text))
	return p, err
}

func wrongStorePolicy(text string) string {
	_, err := storePolicyOf(text)
	if err == nil {
		return ""
	}
	word, _, _ := strings.Cut(text, " ")
	if policies := []string{"fail_open", "fail_closed", "count_locally"}; !slices.Contains(policies, word) {
		return why(err) + didYouMean(word, policies)
	}
	return why(err)
}

func wrongSpan(text string) string {
	if _, err := time.ParseDuration(text); err != nil {
		return "is not a span such as 15m, 24h or 90s"
	}
	return ""
}

// spanOf returns the span of a checked text.
func spanOf(text string) time.Duration {
	span, _ := time.ParseDuration(text)
	return span
}

// numberOf returns the number of a checked text.
func numberOf(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

func fractionOf(text string) float64 {
	f, _ := strconv.ParseFloat(text, 64)
	return f
}

// prefixOf returns the addresses for which a text stands: one address, or all with a prefix.
func prefixOf(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, errors.New("is not an address, nor a prefix such as 10.0.0.0/8")
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return prefix, errors.New("is not an address, nor a prefix such as 10.0.0.0/8")
	case prefix.Bits() == 0:
		return prefix, errors.New("is every address: to try a rule that refuses nobody, set mode: dry_run")
	case prefix.Addr().Is4In6():
		return prefix, errors.New("is a range of IPv4 addresses in the form of IPv6: write it as IPv4")
	case prefix != prefix.Masked():
		return prefix, fmt.Errorf("has bits beyond its prefix: write %v, or one address", prefix.Masked())
	}
	return prefix, nil
}

func wrongAddress(text string) string {
	if _, err := prefixOf(text); err != nil {
		return err.Error()
	}
	return ""
}
