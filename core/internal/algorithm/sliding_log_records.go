package algorithm

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
)

// Record is one call in a log.
type Record struct {
	At   int64 // microseconds since the epoch
	Cost int64
	Note string
}

// AppendRecords appends what sliding_log_records.lua takes.
func AppendRecords(argv []any, l *Limit) []any { return append(argv, l.Window) }

// ReadRecords reads what sliding_log_records.lua replied.
func ReadRecords(reply []string) (records []Record, err error) {
	for ; len(reply) >= 3; reply = reply[3:] {
		at, failed := strconv.ParseInt(reply[0], 10, 64)
		cost, wrong := strconv.ParseInt(reply[1], 10, 64)
		err = errors.Join(err, failed, wrong)
		records = append(records, Record{At: at, Cost: cost, Note: reply[2]})
	}
	if err != nil || len(reply) > 0 {
		return nil, fmt.Errorf("the script replied records of which some are invalid: %w", cmp.Or(err, errReply))
	}
	return records, nil
}
