package denycache

import "sync/atomic"

// generations counts the changes that this process made to keys, by their hash. An answer from
// before a change is not repeated after it, even if it was still on its way, because it is
// remembered under the generation at which it was asked for.
type generations [generationCounts]atomic.Uint32

// generationCounts is how many counts there are. Keys that share one invalidate each other's
// refusals, which costs a trip to the store.
const generationCounts = 16_384

func (g *generations) of(hash uint64) *atomic.Uint32 { return &g[hash>>32%generationCounts] }

// generationSum returns the sum of the generations of the counters whose answers a refusal holds.
// Every change increases it.
func (q *Query) generationSum(r *refusal) (sum uint32) {
	for i := 0; r != nil; i, r = i+1, r.next {
		if !r.unknown {
			sum += q.generations[i]
		}
	}
	return sum
}
