package main

import (
	"testing"
	"time"
)

// All tables admit the same calls, so the comparison is fair.
func TestContendersAdmitTheSame(t *testing.T) {
	for _, c := range contenders {
		table := c.open(1000, 50, time.Hour)
		for _, subject := range []string{"alice", "bob"} {
			admitted := 0
			for range 100 {
				if table.take(subject) {
					admitted++
				}
			}
			if admitted != 50 {
				t.Errorf("%s: %d admitted, want 50", c.name, admitted)
			}
		}
		table.close()
	}
}
