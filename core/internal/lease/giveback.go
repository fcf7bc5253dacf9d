package lease

import (
	"context"
	"slices"
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// maxTogether is how many charges are given back together at most.
const maxTogether = 200

// returns gives charges back. All that this process gives back without a caller who waits goes
// through here, so that a Reset can stop it. If the store cannot be reached, the permits are lost
// until their window is over, and nobody is admitted by mistake.
type returns struct {
	source  Source
	mu      sync.Mutex
	queued  []algorithm.Charge
	sending []*parcel
}

// parcel is charges that are on their way back.
type parcel struct {
	charges []algorithm.Charge
	done    chan struct{} // closed when they are back, or lost
}

// GiveBackSoon gives back in the background what was charged for a call that was refused after all.
func (l *Leases) GiveBackSoon(charges []algorithm.Charge) { l.returns.sendSoon(charges) }

// add queues a charge to be given back by the next call of flush.
func (r *returns) add(c algorithm.Charge) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queued = append(r.queued, c)
}

// flush gives back all that is queued, and returns when that is done.
func (r *returns) flush() {
	r.mu.Lock()
	var parcels []*parcel
	for _, together := range distinctKeys(r.queued) {
		parcels = append(parcels, r.pack(together))
	}
	r.queued = nil
	r.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range parcels {
		all.Go(func() { r.send(p) })
	}
	all.Wait()
}

// sendSoon gives charges back in the background.
func (r *returns) sendSoon(charges []algorithm.Charge) {
	r.mu.Lock()
	p := r.pack(charges)
	r.mu.Unlock()
	r.source.InBackground(func() { r.send(p) })
}

// pack makes a parcel that is to be sent. The returns must be locked.
func (r *returns) pack(charges []algorithm.Charge) *parcel {
	p := &parcel{charges, make(chan struct{})}
	r.sending = append(r.sending, p)
	return p
}

func (r *returns) send(p *parcel) {
	defer r.sent(p)
	_ = r.source.GiveBack(context.Background(), p.charges)
}

func (r *returns) sent(p *parcel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sending = slices.DeleteFunc(r.sending, func(other *parcel) bool { return other == p })
	close(p.done)
}

// drop forgets what is queued for a key. It returns the parcels on their way with charges of the
// key.
func (r *returns) drop(key []byte) (sending []*parcel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	isOf := func(c algorithm.Charge) bool { return string(c.Key) == string(key) }
	r.queued = slices.DeleteFunc(r.queued, isOf)
	for _, p := range r.sending {
		if slices.ContainsFunc(p.charges, isOf) {
			sending = append(sending, p)
		}
	}
	return sending
}

// distinctKeys cuts charges into parts of at most maxTogether, without two charges of one key: a
// script reads all keys before it writes.
func distinctKeys(charges []algorithm.Charge) (parts [][]algorithm.Charge) {
	var keys []map[string]bool
	for _, c := range charges {
		at := 0
		for at < len(parts) && (len(parts[at]) == maxTogether || keys[at][string(c.Key)]) {
			at++
		}
		if at == len(parts) {
			parts, keys = append(parts, nil), append(keys, make(map[string]bool))
		}
		parts[at] = append(parts[at], c)
		keys[at][string(c.Key)] = true
	}
	return parts
}
