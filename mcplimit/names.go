package mcplimit

import (
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// names are the paths of tools and prompts that have answered without an error. The SDK does not
// show which tools a server has, and callers can call any. The zero value is empty.
type names struct {
	paths sync.Map
	count atomic.Int64
}

// maxNames bounds the names, because a server may answer to any name.
const maxNames = 2000

func (n *names) has(path string) bool {
	_, ok := n.paths.Load(path)
	return ok
}

func (n *names) add(path string) {
	if n.count.Load() >= maxNames {
		return
	}
	if _, known := n.paths.LoadOrStore(path, nil); !known {
		n.count.Add(1)
	}
}

// hasName reports whether the path of a call with these parameters has a name that the caller
// chose.
func hasName(params mcp.Params) bool {
	switch params.(type) {
	case *mcp.CallToolParamsRaw, *mcp.GetPromptParams:
		return true
	default:
		return false
	}
}
