package rulefield

import "github.com/accesslimit/accesslimit/core/internal/terms"

// The largest numbers that a file can give.
const (
	longest = 366 * 24 * 3600 // seconds
	largest = 1_000_000_000_000
)

// Table has the fields of core.Rule, in the order of files.
var Table = []Field{
	{Name: "Name", Form: Name, Doc: "The name of the rule and its counters."},
	{Name: "Limit", Form: Limit, Counters: ByLimit,
		Excludes: []Relation{{Field: "Seconds", Code: "limit_and_seconds", why: "takes the place of {Seconds} and {MaxCount}: set one or the other"}},
		Doc:      "How many calls pass, such as " + terms.RuleForms + "."},
	{Name: "Seconds", Form: Number, Least: 1, Most: longest, Counters: ByLimit,
		Doc: "The span of a sliding window, in place of limit."},
	{Name: "MaxCount", Form: Number, Least: 1, Most: largest, Counters: ByLimit,
		Excludes: []Relation{{Field: "Limit", Code: "limit_and_max_count", why: "belongs to {Seconds}: with {Limit}, set the number in that"}},
		Doc:      "The number of calls that pass in any span of seconds; 5 by default."},
	{Name: "Also", Form: Limits, Counters: ByLimit, Doc: "Further limits on the same subject."},
	{Name: "NeedLogin", Form: Truth, Counters: BySubject, Words: "needs a login",
		Option: "Identify", Purpose: "to know who is logged in",
		Doc: "Admit only users who are logged in, and count by user."},
	{Name: "Key", Form: Key, Functions: "Keys", Counters: BySubject,
		Doc: "What to count by: ip, user, host, route, global, header:NAME, query:NAME, param:NAME, " +
			"value:NAME, a function in Functions.Keys, or a list of these. " +
			"By default it is the user with need_login, and otherwise the IP."},
	{Name: "Cost", Form: Function, Functions: "Costs", Words: "computes costs",
		Doc: "The function in Functions.Costs that returns how many permits a call takes; 1 by default."},
	{Name: "Estimate", Form: Function, Functions: "Costs", Words: "charges estimates",
		Excludes: []Relation{{Field: "Cost", Code: "cost_and_estimate", why: "takes the place of {Cost}: set one or the other"}},
		Doc:      "The function in Functions.Costs that returns how many permits a call is charged before it runs; its handler settles it."},
	{Name: "Bill", Form: Bill, Words: "bills %s",
		Needs: []Relation{{Field: "Estimate", Code: "no_estimate", why: "needs {Estimate}, whose terms it has"}},
		Doc:   "The terms of the estimates."},
	{Name: "Plans", Form: Plans, Counters: ByLimit,
		Needs: []Relation{{Field: "Plan", Code: "no_plan", why: "need {Plan}, to say who has which plan"}},
		Doc:   "Limits by plan, in place of limit, or unlimited."},
	{Name: "Plan", Form: Function, Functions: "Plans",
		Needs: []Relation{{Field: "Plans", Code: "no_plans", why: "needs {Plans}, to say what each plan allows"}},
		Doc:   "The function in Functions.Plans that returns the caller's plan."},
	{Name: "LimitFor", Form: Function, Functions: "LimitFor", Counters: ByResult, Words: "computes limits",
		Excludes: []Relation{{Field: "Plans", Code: "plans_and_limit_for", why: "takes the place of {Plans} and {Plan}: set one or the other"}},
		Doc:      "The function in Functions.LimitFor that computes a limit for each call."},
	{Name: "Count", Form: Function, Functions: "Counts", Words: "counts by outcome",
		Doc: "The function in Functions.Counts that reports whether a call counts, by its outcome."},
	{Name: "Note", Form: Function, Functions: "Notes", Words: "keeps notes",
		Doc: "The function in Functions.Notes that returns the note of a sliding log."},
	{Name: "Ban", Form: Ban, Words: "bans %s",
		Doc: "Refuse subjects altogether for a while if they do not stop when they are refused."},
	{Name: "Mode", Form: Mode, Counters: ByMode, Words: "%s",
		Needs: []Relation{{When: "soft", Field: "Name", Code: "soft_without_name", why: "needs a {Name}, and all rules of this name must be soft"}},
		Excludes: []Relation{
			{When: "soft", Field: "Ban", Code: "soft_and_ban", why: "cannot be combined with {Ban}, because the rule refuses nobody"},
			{When: "soft", Field: "Lease", Code: "soft_and_lease",
				why: "cannot be combined with {Lease}: permits are leased before it is known whether another rule refuses the call"},
			{When: "soft", Field: "OnStoreError", Is: "fail_closed", Code: "soft_and_fail_closed",
				why: "cannot be combined with {OnStoreError} fail_closed, because the rule refuses nobody"},
		},
		Doc: "What becomes of calls that do not fit: enforce (the default) refuses them, " +
			"soft marks them for the handler, and dry_run only counts and reports them."},
	{Name: "Warn", Form: Fractions, Most: 4, Words: "warns at %s",
		Option: "OnThreshold", Purpose: "which receives the reports",
		Doc: "Fractions of the limit that are reported to Options.OnThreshold when a call reaches them, in ascending order."},
	{Name: "Skip", Form: Skip, Functions: "Skips", Words: "skips some calls",
		Doc: "The calls that the rule ignores: a function in Functions.Skips, or a mapping."},
	{Name: "Paths", Form: Patterns, Doc: "Patterns of the paths that the rule applies to; by default all."},
	{Name: "Except", Form: Patterns, Doc: "Patterns of paths that the rule does not apply to."},
	{Name: "Methods", Form: Methods, Doc: "The HTTP methods that the rule applies to, in capitals; by default all."},
	{Name: "Lease", Form: Number, Least: 1, Most: largest, Words: "leases %s",
		Excludes: []Relation{
			{Field: "Warn", Code: "lease_and_warn",
				why: "cannot be combined with {Warn}: calls with leased permits do not ask Redis, so they would pass a threshold unseen"},
			{Field: "Estimate", Code: "lease_and_estimate",
				why: "cannot be combined with {Estimate}: leased permits would be used while the counter is in debt"},
		},
		Doc: "How many permits a process may take from Redis in one trip."},
	{Name: "OnStoreError", Form: StorePolicy,
		Doc: "What happens when Redis does not answer: fail_open (the default), fail_closed, " +
			"or count_locally with a share, such as count_locally 0.25."},
	{Name: "Message", Form: Text, Words: "says %q", Doc: "The text for refused callers."},
}
