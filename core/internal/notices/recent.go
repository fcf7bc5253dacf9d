package notices

// recent remembers which notices were added in the last second, so that use that moves up and down
// around a threshold does not ask Redis each time. It does not remember them for longer, because
// another process may reset the counter meanwhile. There are two generations of maxRecent keys. When
// the newer one is full, the older one is forgotten, and some notices are left in vain.
type recent struct {
	newer, older map[string]span
}

type span struct {
	at, until int64
	limit     string
}

const (
	maxRecent = 2_048
	// remembered is for how long a notice is known, in microseconds.
	remembered = 1_000_000
)

// has reports whether the latest notice of the key was of this limit, by the clock that counts. If
// that has stepped back since then, it was not.
func (r *recent) has(key []byte, limit string, at int64) bool {
	s, ok := r.newer[string(key)]
	if !ok {
		s, ok = r.older[string(key)]
	}
	return ok && s.limit == limit && s.at <= at && at < s.until
}

func (r *recent) add(n *Notice) {
	if r.newer == nil || len(r.newer) >= maxRecent {
		r.older, r.newer = r.newer, make(map[string]span)
	}
	r.newer[n.Key] = span{n.At, min(n.Ends, n.At+remembered), n.Limit}
}

func (r *recent) forget(key []byte) {
	delete(r.newer, string(key))
	delete(r.older, string(key))
}
