package rulefile

import (
	"fmt"
	"strings"
)

// maxSuggested is the length of the longest name that is compared with others, in bytes. Longer
// names are hardly typing errors, and the time to compare is the product of both lengths.
const maxSuggested = 40

// didYouMean returns ` (did you mean "limit"?)` if one of the names is close to a wrong one, and
// otherwise "".
func didYouMean(wrong string, names []string) string {
	if best := closest(wrong, names); best != "" {
		return fmt.Sprintf(" (did you mean %q?)", best)
	}
	return ""
}

// closest returns the name that is most similar to a wrong one, or "" if none is similar.
func closest(wrong string, names []string) (best string) {
	if wrong == "" || len(wrong) > maxSuggested {
		return ""
	}
	folded := fold(wrong)
	allowed := min(2, len(folded)/3) + 1
	for _, name := range names {
		if len(name) > maxSuggested {
			continue
		}
		if d := distance(folded, fold(name)); d < allowed {
			best, allowed = name, d
		}
	}
	return best
}

var separators = strings.NewReplacer("_", "", "-", "", " ", "")

// fold makes names equal that differ only in case and separators: maxCount, max-count, max_count.
func fold(name string) string {
	return separators.Replace(strings.ToLower(name))
}

// distance returns how many bytes must be inserted, deleted or replaced to turn a into b
// (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
