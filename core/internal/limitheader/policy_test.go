package limitheader_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/accesslimit/accesslimit/core/internal/limitheader"
)

// A title is printable ASCII of bounded length, and arrives as it was, whatever is in it. Different
// names have different titles.
func TestTitles(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{
		"api", "", `say "hi" \ there`, `"`, `\`, ` a;r=9, "b"`, "100%", "/größe/**", "\x00\xff\r\n", "\x7f",
		strings.Repeat("a", 128), strings.Repeat("a", 129), strings.Repeat("a", 130), strings.Repeat("ä", 64),
	} {
		title := limitheader.Title(name)
		policy := limitheader.NewPolicy(title, 5, time.Second, false)
		item, err := httpsfv.UnmarshalItem([]string{policy.Draft10})
		if err != nil || item.Value != title || len(title) > 128 {
			t.Errorf("%q: %v in %s, title %q", name, err, policy.Draft10, title)
		}
		if other, ok := seen[title]; ok {
			t.Errorf("%q and %q are both %q", name, other, title)
		}
		seen[title] = name
	}
}
