package examples_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	code    = regexp.MustCompile("(?ms)^```.*?^```$|^    .*?$")
	// outsideAnchors is what no anchor has: GitHub removes all but letters, digits, hyphens, underscores
	// and spaces.
	outsideAnchors = regexp.MustCompile(`[^\pL\pN\-_ ]`)
)

// Every link from one page to another leads to a file, and to a heading of it.
func TestLinks(t *testing.T) {
	links := 0
	err := filepath.WalkDir("..", func(page string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "node_modules" { // what the tests in a browser install
			return fs.SkipDir
		}
		if err != nil || filepath.Ext(page) != ".md" {
			return err
		}
		for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(text(t, page), ""), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			links++
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if anchor != "" && !slices.Contains(anchors(text(t, path)), anchor) {
				t.Errorf("%s: %s has no heading for #%s", page, path, anchor)
			}
		}
		return nil
	})
	if err != nil || links < 50 {
		t.Errorf("%d links, %v", links, err)
	}
}

// anchors returns the anchors that GitHub makes of the headings of a page.
func anchors(page string) (all []string) {
	for _, h := range heading.FindAllStringSubmatch(code.ReplaceAllString(page, ""), -1) {
		plain := outsideAnchors.ReplaceAllString(strings.ToLower(h[1]), "")
		all = append(all, strings.ReplaceAll(plain, " ", "-"))
	}
	return all
}

func text(t *testing.T, path string) string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}
