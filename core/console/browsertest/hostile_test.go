package browsertest

import (
	"strings"
	"testing"
)

// Subjects, names of rules and notes that look like HTML show as text on every page. If one of them
// ran, the tab would record a dialog, a request, or a violation of the policy.
func TestHostileTextShowsAsText(t *testing.T) {
	f := newSeeded(t)
	b := newTab(t, f.page(0), "olga")
	b.openOffenders(hostile[0])
	for _, path := range b.pages(append(hostile, long)...) {
		b.open(path)
		wantOnlyText(t, b, path)
	}
	for path, parts := range map[string][]string{
		"offenders": {"user:"},
		"bans":      {"user:", "hammers us: "},
		"audit":     {"user:", "hammers us: ", "pays for it: "},
	} {
		b.open(path)
		for _, part := range parts {
			for _, user := range hostile {
				b.wants(part + user)
			}
		}
	}
	for _, user := range hostile {
		b.open(subjectPath(user))
		b.wants("user:"+user, "pays for it: "+user)
		if shown := eval[string](b, `document.querySelector("input[name=subject]").value`); shown != "user:"+user {
			t.Errorf("the field of %q has %q", user, shown)
		}
	}
	b.open("rules")
	b.wants("<b>odd</b>")
}

// wantOnlyText checks that no element stands on the page that its templates do not have.
func wantOnlyText(t testing.TB, b *tab, path string) {
	t.Helper()
	found := eval[[]string](b, `[...document.querySelectorAll(
		"img, b, script:not([src]), script[src]:not([src='script.js']), svg[onload], style, [style], [onerror], [onload], [onmouseover], a[href^='javascript:']")].map(e => e.outerHTML)`)
	if len(found) > 0 {
		t.Errorf("%s has elements that are not its own: %s", path, strings.Join(found, "\n"))
	}
}
