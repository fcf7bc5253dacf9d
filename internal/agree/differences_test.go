package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Only what is listed may differ.
func TestDiffer(t *testing.T) {
	listed := filepath.Join(t.TempDir(), "differences.txt")
	text := "# a comment\n\nwhy: records\nwithout: on=\\d+ ?\n\nwhy: refunds\nafter: step\nafter: refund\nwith: lost 1\nwas: left 5\nis: left 4\nthen: nothing is compared\n\nwhy: others\nafter: on=2\nwas: x\nis: y\n"
	if err := os.WriteFile(listed, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	differences, err := readDifferences(listed)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		was, is string // lines, separated by commas
		differ  int
	}{
		{"a,b,c", "a,b,c", -1},
		{"a,b,c", "a,x,c", 1},
		{"a,b,c", "a,b", 1},
		{"keys sw=7,b", "keys on=1 sw=7,b", -1},
		{"keys sw=7,b", "keys on=1 sw=7,c", 1},
		{"keys sw=7,b", "keys on=1 sw=8,b", 0},
		{"step,refund,left 5,b", "step,refund,left 4,lost 1", -1},
		{"step,refund,left 5,b", "step,refund,left 4,lost 0", 2},
		{"step,refund,left 5,b", "step,refund,left 3,lost 1", 2},
		{"step,call,left 5,b", "step,call,left 4,lost 1", 2},
		{"on=2 a,x", "a,y", -1},
		{"a,x", "on=2 a,y", -1},
		{"on=1 a,x", "a,y", 1},
	} {
		c := comparison{differences: differences}
		if line := c.differ(strings.Split(test.was, ","), strings.Split(test.is, ","), true); line != test.differ {
			t.Errorf("%q and %q differ at %d, want %d", test.was, test.is, line, test.differ)
		}
	}
}

// Every entry of the list parses.
func TestDifferences(t *testing.T) {
	if all, err := readDifferences("differences.txt"); err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	if _, err := readDifferences("driver.go"); err == nil {
		t.Error("anything is taken for a list of differences")
	}
}
