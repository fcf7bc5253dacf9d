package algorithm

import "fmt"

// Record is one call in a log.
type Record struct {
	At   int64 // microseconds since the epoch
	Cost int64
	Note string
}

// AppendRecords appends what sliding_log_records.lua takes.
func AppendRecords(argv []any, l *Limit) []any { return append(argv, l.Window) }

// ReadRecords reads what sliding_log_records.lua replied.
func ReadRecords(reply []any) ([]Record, error) {
	n, records := numbers{left: reply}, make([]Record, 0, len(reply)/3)
	for len(n.left) > 0 {
		r := Record{At: n.next(), Cost: n.next()}
		if len(n.left) == 0 {
			n.wrong = true
			break
		}
		note, ok := n.left[0].(string)
		n.left, n.wrong = n.left[1:], n.wrong || !ok
		r.Note = note
		records = append(records, r)
	}
	if n.wrong {
		return nil, fmt.Errorf("the script replied %d values for records, some of them invalid", len(reply))
	}
	return records, nil
}
