package memstore

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"
)

// model is a table beside a map of what it must hold: for each key, the freshAt of its entry.
type model struct {
	t *testing.T
	table
	tails tails
	want  map[string]int64
}

func newModel(t *testing.T) *model {
	return &model{t: t, table: table{seed: maphash.MakeSeed()}, want: map[string]int64{}}
}

func (m *model) tag(key string) uint16 { return tag(maphash.String(m.seed, key)) }

func (m *model) put(key string, freshAt int64) {
	e := m.find([]byte(key), m.tag(key))
	if _, known := m.want[key]; known != (e != nil) {
		m.t.Fatalf("%s is there: %v", key, e != nil)
	}
	if e == nil {
		e = m.add(m.tails.name([]byte(key)), m.tag(key))
	}
	e.freshAt = freshAt
	m.want[key] = freshAt
}

func (m *model) drop(key string) {
	index := m.indexOf([]byte(key), m.tag(key))
	if _, known := m.want[key]; known != (index >= 0) {
		m.t.Fatalf("%s is there: %v", key, index >= 0)
	}
	if index >= 0 {
		m.remove(index)
	}
	delete(m.want, key)
}

func (m *model) check() {
	m.t.Helper()
	if n := m.sound(); n != len(m.want) {
		m.t.Fatalf("%d entries, want %d", n, len(m.want))
	}
	for key, freshAt := range m.want {
		if e := m.find([]byte(key), m.tag(key)); e == nil || !e.is([]byte(key)) || e.freshAt != freshAt {
			m.t.Fatalf("%s: %+v, want one fresh at %d", key, e, freshAt)
		}
	}
}

// A table that grows and shrinks holds each key that was added once, whatever is added and removed
// in between.
func TestTableHoldsWhatWasPut(t *testing.T) {
	m, random := newModel(t), rand.New(rand.NewPCG(1, 2))
	for round, most := range []int{3, 40, 1000, 3000, 100, 1, 0} {
		for i := range 4000 {
			if key := fmt.Sprint("key", random.IntN(4000)); len(m.want) < most || random.IntN(2) == 0 && len(m.want) == most {
				m.put(key, int64(i))
			} else {
				m.drop(key)
			}
		}
		for key := range m.want {
			if len(m.want) > most {
				m.drop(key)
			}
		}
		m.check()
		if len(m.entries) != 0 && cap(m.entries) > 2*len(m.entries)+34 || round == 6 && cap(m.entries)+cap(m.slots) != 0 {
			t.Errorf("round %d: room for %d entries is kept for %d", round, cap(m.entries), len(m.entries))
		}
	}
}

// Keys with similar hashes crowd the same slots, also around the end of the index. Each is found,
// and only under its own name.
func TestKeysWithLikeHashes(t *testing.T) {
	m := newModel(t)
	var alike []string
	for i := 0; len(alike) < 300; i++ {
		if key := fmt.Sprint("key", i); m.tag(key)+16 < 32 { // the first and the last few of all hashes
			alike = append(alike, key)
		}
	}
	for round := range 20 {
		rand.Shuffle(len(alike), func(i, j int) { alike[i], alike[j] = alike[j], alike[i] })
		for i, key := range alike[:100] {
			m.put(key, int64(i))
		}
		m.check()
		for _, key := range alike[50 : 50+10*round] {
			m.drop(key)
		}
		m.check()
	}
}

// However a key is split into the parts of a name, the name equals this key and no other.
func TestNamesAreExact(t *testing.T) {
	var tails tails
	var keys [][]byte
	for _, subject := range []string{
		"", "a", "::/64", "ip:2001:db8:1:2::/64", "ip:2001:db8:aaaa:bbbb::/64", "ip:2001:db8:aaaa:bbbb:", "{x", "accesslimit:{user:alice",
		strings.Repeat("s", maxHead), strings.Repeat("s", maxHead+1), strings.Repeat("s", maxHead) + "::/64",
		strings.Repeat("s", maxHead+maxRest), strings.Repeat("s", maxHead+maxRest+1), strings.Repeat("s", 180), strings.Repeat("s", 180) + "::/64",
	} {
		for _, end := range []string{"", "}", "}:n:tb4:1", "}:n:tb4:2", "}:m:tb4:1", "}}:n:tb4:1"} {
			keys = append(keys, []byte(subject+end))
		}
	}
	for i, key := range keys {
		name := tails.name(key)
		if got := name.appendTo(nil); !bytes.Equal(got, key) {
			t.Errorf("the name of %s is %s", key, got)
		}
		for j, other := range keys {
			if name.is(other) != (i == j) {
				t.Errorf("%s is the name of %s: %v", key, other, i != j)
			}
		}
	}
}

// The number of shared tails is bounded. Names beyond the bound are exact, too.
func TestTailsAreBounded(t *testing.T) {
	var tails tails
	for range 2 {
		for i := range maxShared + 10 {
			key := fmt.Appendf(nil, "s}:n%d:tb4:1", i)
			if name := tails.name(key); !name.is(key) {
				t.Fatalf("%s has another name", key)
			}
		}
	}
	if n := len(tails.shared.All()); n != maxShared {
		t.Errorf("%d tails are shared, want %d", n, maxShared)
	}
	tails.renew()
	first, second := tails.name([]byte("s}:new:tb4:1")), tails.name([]byte("t}:new:tb4:1"))
	if first.tail != second.tail {
		t.Error("the tails of a new limit are not shared after the table was renewed")
	}
}

// An entry stays small, and two shards share no cache line.
func TestEntriesStaySmall(t *testing.T) {
	if n := unsafe.Sizeof(entry{}); n > 80 {
		t.Errorf("an entry takes %d bytes", n)
	}
	if n := unsafe.Sizeof(shard{}); n%64 != 0 {
		t.Errorf("a shard takes %d bytes", n)
	}
}
