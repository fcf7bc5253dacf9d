package redistest

import (
	"context"
	"fmt"
	"strings"
)

// Calls returns how often a command was called so far, by clients and by scripts.
func (r *Server) Calls(command string) (calls int) {
	r.t.Helper()
	client := r.probe()
	defer func() { _ = client.Close() }()
	stats, err := client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		r.t.Fatalf("INFO commandstats: %v", err)
	}
	if _, stat, found := strings.Cut(stats, "cmdstat_"+command+":"); found {
		_, _ = fmt.Sscanf(stat, "calls=%d", &calls)
	}
	return calls
}
