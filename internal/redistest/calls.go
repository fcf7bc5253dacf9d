package redistest

import (
	"context"
	"fmt"
	"strings"
)

// Calls returns how often commands were called so far, by clients and by scripts.
func (r *Server) Calls(commands ...string) (calls int) {
	r.t.Helper()
	client := r.probe()
	defer func() { _ = client.Close() }()
	stats, err := client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		r.t.Fatalf("INFO commandstats: %v", err)
	}
	for _, command := range commands {
		var n int
		if _, stat, found := strings.Cut(stats, "cmdstat_"+command+":"); found {
			_, _ = fmt.Sscanf(stat, "calls=%d", &n)
		}
		calls += n
	}
	return calls
}
