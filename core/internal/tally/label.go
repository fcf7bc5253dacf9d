package tally

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// maxLabel is the length of the longest name in a snapshot.
const maxLabel = 200

// Label returns a name as snapshots show it: in UTF-8, and cut if it is too long. Metrics servers
// reject other texts, and callers can make up gRPC routes of any length. Different long names
// nearly always have different labels.
func Label(name string) string {
	valid := strings.ToValidUTF8(name, "\uFFFD")
	if len(valid) <= maxLabel {
		return valid
	}
	digest := fnv.New32a()
	digest.Write([]byte(name))
	end := fmt.Sprintf("...%08x", digest.Sum32())
	return strings.ToValidUTF8(valid[:maxLabel-len(end)], "") + end
}
