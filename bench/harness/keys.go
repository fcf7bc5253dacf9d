package harness

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// KeyLen is the length of every subject.
const KeyLen = 20

// Digits is the number of digits at the end of a subject.
const Digits = 12

// Keys holds subjects that are made before anything is measured. They lie side by side in one
// string, so that ten million of them are one object to the garbage collector.
type Keys struct {
	text string
	n    int
}

// NewKeys makes n subjects. The tag has three letters. Subjects with different tags differ.
func NewKeys(tag string, n int) Keys {
	var b strings.Builder
	b.Grow(n * KeyLen)
	for i := range n {
		fmt.Fprintf(&b, "user:%.3s%0*d", tag, Digits, i)
	}
	return Keys{b.String(), n}
}

// At returns subject number i. It allocates nothing.
func (k Keys) At(i int) string { return k.text[i*KeyLen : (i+1)*KeyLen] }

// Len returns the number of subjects.
func (k Keys) Len() int { return k.n }

// picksAtLeast is the length of a sequence of picks, unless there are more keys.
const picksAtLeast = 1 << 20

// seed is the same for every run, so that all runs make the same calls.
const seed = 3

// One always picks the same key.
func One() []uint32 { return make([]uint32, 1) }

// Uniform picks from n keys, all equally likely. The length of the result is a power of two.
func Uniform(n int) []uint32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	return picks(n, func() uint32 { return rng.Uint32N(uint32(n)) })
}

// Zipf picks from n keys. The first is picked most often, the k-th k^s times less often.
func Zipf(n int, s float64) []uint32 {
	zipf := rand.NewZipf(rand.New(rand.NewPCG(seed, 2)), s, 1, uint64(n-1))
	return picks(n, func() uint32 { return uint32(zipf.Uint64()) })
}

func picks(n int, next func() uint32) []uint32 {
	length := picksAtLeast
	for length < n {
		length *= 2
	}
	sequence := make([]uint32, length)
	for i := range sequence {
		sequence[i] = next()
	}
	return sequence
}
