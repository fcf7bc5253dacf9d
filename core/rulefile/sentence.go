package rulefile

import (
	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
)

// sentence returns the text of a mistake that core found, with the names of fields as in files.
func sentence(wrong *core.RuleError) string {
	if relation := rulefield.RelationOf(wrong.Code); relation != nil {
		return relation.InFile()
	}
	return wrong.Why
}
