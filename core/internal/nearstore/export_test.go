package nearstore

// Leases is how many counters are leased.
func (s *Store) Leases() (n int) {
	s.leases.table.each(func(in *set[lease]) {
		for range in.all {
			n++
		}
	})
	return n
}
