package harness

import "testing"

func TestTable(t *testing.T) {
	table := NewTable("limiter", "µs")
	table.Row("one | two", 12.34)
	table.Row("x", "-")
	want := "" +
		"| limiter    | µs   |\n" +
		"| ---        | --:  |\n" +
		"| one \\| two | 12.3 |\n" +
		"| x          | -    |\n"
	if got := table.String(); got != want {
		t.Errorf("the table is\n%swant\n%s", got, want)
	}
}

// A row that is too short or too long does not break the table.
func TestTableKeepsItsWidth(t *testing.T) {
	table := NewTable("a", "b")
	table.Row(1)
	table.Row(1, 2, 3)
	want := "| a   | b   |\n| --- | --: |\n| 1   |     |\n| 1   | 2   |\n"
	if got := table.String(); got != want {
		t.Errorf("the table is\n%swant\n%s", got, want)
	}
}
