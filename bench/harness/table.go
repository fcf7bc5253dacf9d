package harness

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Table is a table in Markdown, aligned so that it can be read as it is.
type Table struct {
	columns int
	rows    []string
}

// NewTable begins a table. All columns but the first are aligned to the right.
func NewTable(head ...string) *Table {
	t := &Table{columns: len(head)}
	t.rows = []string{strings.Join(head, "\t| "), "---" + strings.Repeat("\t| --:", len(head)-1)}
	return t
}

// Row adds a row. Numbers are formatted with Number, everything else with fmt's default.
func (t *Table) Row(cells ...any) {
	texts := make([]string, t.columns)
	for i := range texts {
		if i >= len(cells) {
			continue
		}
		if v, ok := cells[i].(float64); ok {
			texts[i] = Number(v)
		} else {
			texts[i] = strings.ReplaceAll(fmt.Sprint(cells[i]), "|", `\|`)
		}
	}
	t.rows = append(t.rows, strings.Join(texts, "\t| "))
}

// Empty reports whether the table has no rows.
func (t *Table) Empty() bool { return len(t.rows) == 2 }

// String returns the table.
func (t *Table) String() string {
	var b strings.Builder
	aligned := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	for _, row := range t.rows {
		fmt.Fprintf(aligned, "| %s\t|\n", row)
	}
	_ = aligned.Flush() // a strings.Builder does not fail
	return b.String()
}
