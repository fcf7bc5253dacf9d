package harness

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Table is written as Markdown that is also readable as it is.
type Table struct {
	head []string
	rows [][]string
}

// NewTable begins a table.
func NewTable(head ...string) *Table { return &Table{head: head} }

// Row adds a row. Numbers are formatted with Number, everything else with fmt's default.
func (t *Table) Row(cells ...any) {
	row := make([]string, len(t.head))
	for i := range min(len(row), len(cells)) {
		if v, ok := cells[i].(float64); ok {
			row[i] = Number(v)
		} else {
			row[i] = strings.ReplaceAll(fmt.Sprint(cells[i]), "|", `\|`)
		}
	}
	t.rows = append(t.rows, row)
}

// Empty reports whether the table has no rows.
func (t *Table) Empty() bool { return len(t.rows) == 0 }

// String returns the table with aligned columns: the first to the left, the others to the right.
func (t *Table) String() string {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	line := func(row []string) {
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString("| " + cell + pad + " |")
			} else {
				b.WriteString(" " + pad + cell + " |")
			}
		}
		b.WriteString("\n")
	}
	line(t.head)
	for i, width := range widths {
		if i == 0 {
			b.WriteString("|" + strings.Repeat("-", width+2) + "|")
		} else {
			b.WriteString(strings.Repeat("-", width+1) + ":|")
		}
	}
	b.WriteString("\n")
	for _, row := range t.rows {
		line(row)
	}
	return b.String()
}
