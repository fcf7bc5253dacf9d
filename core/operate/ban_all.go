package operate

import (
	"context"
	"slices"
	"strings"
)

// maxRulesOfPage is how many rules one call of AllBans asks for.
const maxRulesOfPage = 100

// AllBans returns a page of the bans in force of all rules of this Limiter that obey bans, in the
// order of the names of the rules, and then of the subjects. It looks at n listed bans, 1 to 1000, of
// at most 100 rules. For the first page, after is "". For each further page, it is the next of the
// previous page. next is "" on the last page. A page may have no bans though others follow.
// [Operator.Bans] says which bans are listed, and has the same errors.
func (o *Operator) AllBans(ctx context.Context, after string, n int) (page []BanEntry, next string, err error) {
	if err := o.checkBans(ctx, "any", n); err != nil {
		return nil, "", err
	}
	from, subject, _ := strings.Cut(after, "\n") // which no name has
	rules := o.banningRules()
	first, found := slices.BinarySearch(rules, from)
	if !found {
		subject = "" // the rule is gone
	}
	for i, rule := range rules[first:] {
		if len(page) == n || i == maxRulesOfPage {
			return page, rule + "\n", nil
		}
		bans, more, err := o.Bans(ctx, rule, subject, n-len(page))
		if page = append(page, bans...); err != nil || more != "" {
			return page, rule + "\n" + more, err
		}
		subject = ""
	}
	return page, "", nil
}

// banningRules returns the names of the rules that obey bans or pauses, sorted.
func (o *Operator) banningRules() []string {
	rules, _ := o.front.Obeying()
	rules = append(rules, o.front.PausingRules()...)
	slices.Sort(rules)
	return slices.Compact(rules)
}
