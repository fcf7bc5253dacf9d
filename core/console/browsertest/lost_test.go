package browsertest

import (
	"slices"
	"strings"
	"testing"
)

// While Redis is down, each page that needs it says so, and shows what this process knows. When
// Redis is back, the pages are complete again, without a restart of the service.
func TestPagesSayThatRedisIsDown(t *testing.T) {
	source, f := axe(t), newSeeded(t)
	b := newTab(t, f.page(0), "olga")
	f.redis.Kill()
	for _, path := range b.pages("mallory") {
		b.open(path)
		if needless := []string{"subject", "explain", "rules"}; !slices.Contains(needless, path) {
			b.reloadUntil("Redis did not answer") // the first page knows it after two seconds
		}
		b.wantAccessible(source, path)
	}
	b.open("")
	b.wants("orders")
	f.redis.Restart()
	for _, path := range b.pages("mallory") {
		b.open(path)
		b.reloadWhile(func(shown string) bool { return strings.Contains(shown, "Redis did not answer") })
	}
}
