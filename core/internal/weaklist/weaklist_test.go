package weaklist

import (
	"runtime"
	"slices"
	"testing"
)

type object struct{ _ [32]byte } // not so small that objects share memory

// Objects in use are listed in order, up to a bound. Those beyond it are counted.
func TestListIsBounded(t *testing.T) {
	var l List[object]
	added := make([]*object, most+10)
	for i := range added {
		added[i] = new(object)
		l.Add(added[i])
	}
	listed, unlisted := l.All()
	if !slices.Equal(listed, added[:most]) || unlisted != 10 {
		t.Errorf("%d are listed, and %d are not", len(listed), unlisted)
	}
	runtime.KeepAlive(added)
}

// The list keeps nothing that nobody else holds, and then has room again.
func TestListKeepsNothing(t *testing.T) {
	var l List[object]
	for range 2 * most {
		l.Add(new(object))
	}
	for listed, unlisted := l.All(); len(listed) > 0 || unlisted > 0; listed, unlisted = l.All() {
		runtime.GC()
	}
	added := make([]*object, most)
	for i := range added {
		added[i] = new(object)
		l.Add(added[i])
	}
	if listed, unlisted := l.All(); len(listed)+unlisted != most || len(listed) < most-most/4 {
		t.Errorf("%d are listed, and %d are not", len(listed), unlisted)
	}
	runtime.KeepAlive(added)
}
