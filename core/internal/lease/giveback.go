package lease

import (
	"context"
	"slices"
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// maxTogether is how many charges are given back together at most.
const maxTogether = 200

// giveBackQueue gives charges back. Everything that this process gives back while no caller waits
// goes through here, so that a Reset can stop it. If the store cannot be reached, the permits are
// lost until their window is over, which admits nobody by mistake.
type giveBackQueue struct {
	source  Source
	mu      sync.Mutex
	queued  []algorithm.Charge
	sending []*parcel
}

// parcel holds charges that are on their way back.
type parcel struct {
	charges []algorithm.Charge
	done    chan struct{} // closed when they are back, or lost
}

// GiveBackSoon gives back, in the background, charges of a call that was refused in the end.
func (l *Leases) GiveBackSoon(charges []algorithm.Charge) { l.giveBacks.sendSoon(charges) }

// add queues a charge to be given back by the next call of flush.
func (q *giveBackQueue) add(c algorithm.Charge) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queued = append(q.queued, c)
}

// flush gives back all queued charges, and returns when that is done.
func (q *giveBackQueue) flush() {
	q.mu.Lock()
	var parcels []*parcel
	for _, together := range distinctKeys(q.queued) {
		parcels = append(parcels, q.pack(together))
	}
	q.queued = nil
	q.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range parcels {
		all.Go(panics.Guard(func() { q.send(p) }, q.source.Panicked))
	}
	all.Wait()
}

// sendSoon gives charges back in the background.
func (q *giveBackQueue) sendSoon(charges []algorithm.Charge) {
	q.mu.Lock()
	p := q.pack(charges)
	q.mu.Unlock()
	q.source.InBackground(func() { q.send(p) })
}

// pack makes a parcel to be sent. The queue must be locked.
func (q *giveBackQueue) pack(charges []algorithm.Charge) *parcel {
	p := &parcel{charges, make(chan struct{})}
	q.sending = append(q.sending, p)
	return p
}

func (q *giveBackQueue) send(p *parcel) {
	defer q.remove(p)
	_ = q.source.Change(context.Background(), &algorithm.Change{Charges: p.charges})
}

// remove removes a parcel that was sent.
func (q *giveBackQueue) remove(p *parcel) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sending = slices.DeleteFunc(q.sending, func(other *parcel) bool { return other == p })
	close(p.done)
}

// drop forgets the queued charges of a key. It returns the parcels on their way that have charges
// of the key.
func (q *giveBackQueue) drop(key []byte) (sending []*parcel) {
	q.mu.Lock()
	defer q.mu.Unlock()
	isOf := func(c algorithm.Charge) bool { return string(c.Key) == string(key) }
	q.queued = slices.DeleteFunc(q.queued, isOf)
	for _, p := range q.sending {
		if slices.ContainsFunc(p.charges, isOf) {
			sending = append(sending, p)
		}
	}
	return sending
}

// distinctKeys splits charges into parts of at most maxTogether. No part has two charges of one
// key, because the script reads all keys before it writes.
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
