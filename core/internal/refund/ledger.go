package refund

import (
	"fmt"
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Ledger remembers how much of each charge was given back. A Receipt is copied with its decision,
// so it cannot hold that itself, and a pointer in it would cost each call an allocation. There are
// two generations: when the newer one has maxRefunds entries, it becomes the older one, and the
// previous older one is forgotten. The zero Ledger is empty and ready for use. It is safe for
// concurrent use.
type Ledger struct {
	mu           sync.Mutex
	newer, older map[uint64]int64
}

const maxRefunds = 65_536

// Part is one of the charges that a refund gives back.
type Part struct {
	Receipt Receipt
	Key     []byte // of the counter that was charged
}

// charge returns the charge of n permits of the part, for the store to give back.
func (p *Part) charge(n int64) algorithm.Charge {
	r := &p.Receipt
	return algorithm.Charge{
		Key: p.Key, Limit: r.Limit, Cost: n, At: r.at, Position: r.position, Whole: n == r.Cost, Mark: r.mark, LocalShare: r.local,
	}
}

// Take records that n permits of each part are given back, and returns their charges for the store.
// If a part has fewer left, it records nothing and returns why.
func (l *Ledger) Take(parts []Part, n int64) (charges []algorithm.Charge, why string) {
	if len(parts) == 0 {
		return nil, "is more than this decision charged: nothing"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range parts {
		r := &parts[i].Receipt
		if given := l.given(r.id); n > r.Cost-given {
			return nil, fmt.Sprintf("is more than is left of the charge: %d of %d were refunded before", given, r.Cost)
		}
	}
	for i := range parts {
		l.note(parts[i].Receipt.id, n)
		charges = append(charges, parts[i].charge(n))
	}
	l.forget()
	return charges, ""
}

// TakeRest records that the rest of a charge is given back, and returns that rest, which may be
// nothing. id is the ID of the charge's Receipt. It reads and writes under one lock, so that no
// refund can come in between.
func (l *Ledger) TakeRest(charge algorithm.Charge, id uint64) algorithm.Charge {
	l.mu.Lock()
	defer l.mu.Unlock()
	if charge = charge.Part(charge.Cost - l.given(id)); charge.Cost > 0 {
		l.note(id, charge.Cost)
		l.forget()
	}
	return charge
}

// note adds n to what was given back of a charge. The ledger must be locked, and forget must be called
// afterwards.
func (l *Ledger) note(id uint64, n int64) {
	before := l.given(id)
	if l.newer == nil {
		l.newer = make(map[uint64]int64)
	}
	l.newer[id] = before + n
}

// forget drops the older generation if the newer one is full. It must be called after all parts of
// a refund are noted, because some of them may be in the older generation.
func (l *Ledger) forget() {
	if len(l.newer) >= maxRefunds {
		l.older, l.newer = l.newer, nil
	}
}

func (l *Ledger) given(id uint64) int64 {
	if given, ok := l.newer[id]; ok {
		return given
	}
	return l.older[id]
}
