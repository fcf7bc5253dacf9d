package outgoing

import "sync"

// watches has the keys for which a waiting call looks for pauses.
type watches struct {
	mu   sync.Mutex
	keys map[string]bool
}

// begin reports whether no other call looks for pauses of the key.
func (w *watches) begin(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys[key] {
		return false
	}
	if w.keys == nil {
		w.keys = make(map[string]bool)
	}
	w.keys[key] = true
	return true
}

func (w *watches) end(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.keys, key)
}
