package rulefile

import (
	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
)

// sentence returns what a message says of a mistake that core found. Names of fields in it are those
// of files.
func sentence(wrong *core.RuleError) string {
	if relation := rulefield.RelationOf(wrong.Code); relation != nil {
		return relation.InFile()
	}
	return wrong.Why
}
