package notices

// recent remembers the notices that were added in the last second, so that Redis is not asked each
// time the use moves up and down around a threshold. It does not remember them for longer, because
// another process may reset the counter meanwhile. There are two generations of maxRecent keys.
// When the newer one is full, the older one is forgotten, and some notices are posted in vain.
type recent struct {
	newer, older map[string]span
}

type span struct {
	at, until int64
	limit     string
}

const (
	maxRecent = 2_048
	// remembered is how long a notice is remembered, in microseconds.
	remembered = 1_000_000
)

// has reports whether the latest notice of the key was about this limit and is recent at the time
// at. If the clock has stepped back since then, it reports false.
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
