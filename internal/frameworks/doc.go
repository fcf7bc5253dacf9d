// Package frameworks makes the app of adaptertest with each framework of this module, through its
// adapter: for the adapters' own tests, and for faults that are tried on all of them.
package frameworks

import (
	"strings"

	"github.com/accesslimit/accesslimit/core/adaptertest"
)

// pathFor returns a route's path in the spelling of gin, echo and fiber, which differ only in how
// they write {rest...}.
func pathFor(route adaptertest.Route, rest string) string {
	return strings.NewReplacer("{rest...}", rest, "{", ":", "}", "").Replace(route.Path)
}
