package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/rulefile"
)

// replayFunctions returns functions that return what the log has in the field value:NAME, for a function
// of that name. A function that counts outcomes is given by -count. Otherwise it counts all, and its uses
// are unknown.
func replayFunctions(c *cli.Command, uses []rulefile.FunctionUse) (f rulefile.Functions, unknown []rulefile.FunctionUse, err error) {
	if f, err = rulefile.StandIns(uses...); err != nil {
		return f, nil, err
	}
	for name := range f.Keys {
		f.Keys[name] = func(q core.Request) (string, error) { return logged(q, name), nil }
	}
	for name := range f.Plans {
		f.Plans[name] = func(q core.Request) (string, error) { return logged(q, name), nil }
	}
	for name := range f.LimitFor {
		f.LimitFor[name] = func(q core.Request) (core.Limit, error) { return loggedLimit(q, name) }
	}
	for name := range f.Costs {
		f.Costs[name] = func(q core.Request) int { return loggedCost(q, name) }
	}
	for name := range f.Skips {
		f.Skips[name] = func(q core.Request) bool { return logged(q, name) == "true" }
	}
	given, err := countFunctions(c, f)
	for _, use := range uses {
		if use.Field == "count" && !given[use.Name] {
			unknown = append(unknown, use)
		}
	}
	return f, unknown, err
}

// logged returns the field value:NAME of a call, or "".
func logged(q core.Request, name string) string {
	text, _ := q.Value(name).(string)
	return text
}

// loggedLimit returns the limit in a field, or the zero Limit, for which the rule's own stands.
func loggedLimit(q core.Request, name string) (core.Limit, error) {
	text := logged(q, name)
	if text == "" {
		return core.Limit{}, nil
	}
	return core.ParseLimit(text)
}

// loggedCost returns the cost in a field, or 1.
func loggedCost(q core.Request, name string) int {
	cost, err := strconv.Atoi(logged(q, name))
	if err != nil || cost < 0 {
		return 1
	}
	return cost
}

// countFunctions sets the functions that -count gives, failed=401,403 or failed=400-599, and returns
// their names.
func countFunctions(c *cli.Command, f rulefile.Functions) (given map[string]bool, err error) {
	given = make(map[string]bool)
	for _, text := range c.StringSlice("count") {
		name, list, ok := strings.Cut(text, "=")
		if f.Counts[name] == nil {
			return nil, usage(c, "-count %q: the rules have no count function %q", text, name)
		}
		statuses, err := statusRanges(list)
		if !ok || err != nil {
			return nil, usage(c, "-count %q: write a name and statuses, as in failed=401,500-599", text)
		}
		f.Counts[name] = func(status int) bool {
			return slices.ContainsFunc(statuses, func(r [2]int) bool { return r[0] <= status && status <= r[1] })
		}
		given[name] = true
	}
	return given, nil
}

// statusRanges reads a list of statuses and ranges of them.
func statusRanges(list string) (ranges [][2]int, err error) {
	for _, part := range names(list) {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		var r [2]int
		if r[0], err = strconv.Atoi(first); err != nil {
			return nil, err
		}
		if r[1], err = strconv.Atoi(last); err != nil {
			return nil, err
		}
		ranges = append(ranges, r)
	}
	if ranges == nil {
		return nil, strconv.ErrSyntax
	}
	return ranges, nil
}
