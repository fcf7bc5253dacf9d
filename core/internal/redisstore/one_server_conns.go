package redisstore

import (
	"reflect"

	"github.com/redis/go-redis/v9"
)

// connCount holds how many connections are in a client's pools, and how many have left them. Every
// connection enters a pool once, and leaves it once. So the sum is the number of connections made
// so far, whether for a command, in the background (MinIdleConns), or too late for the command that
// needed it. PoolStats.Misses counts only those for commands.
type connCount struct{ present, removed uint32 }

// made returns how many connections were made. A connection that was removed during the count may
// count twice, but none is missed.
func (c connCount) made() uint32 { return c.present + c.removed }

// countConns counts a client's connections.
func countConns(client *redis.Client) connCount {
	stats := client.PoolStats()
	c := connCount{stats.TotalConns, stats.StaleConns}
	if pipelines := pipelineStats(stats); pipelines.IsValid() && !pipelines.IsNil() {
		c.present += uint32(pipelines.Elem().Field(totalConns).Uint())
		c.removed += uint32(pipelines.Elem().Field(staleConns).Uint())
	}
	return c
}

// connsMade returns exactly how many connections were made.
func connsMade(client *redis.Client) uint32 {
	before := countConns(client)
	for {
		c := countConns(client)
		if c.removed == before.removed { // so none was removed during the count
			return c.made()
		}
		before = c
	}
}

// In newer versions of go-redis, pipelines have a pool of their own, with statistics of the same
// type.
var (
	pipelinesField = fieldOf("PipelineStats")
	totalConns     = fieldOf("TotalConns")
	staleConns     = fieldOf("StaleConns")
)

// fieldOf returns the index of a field of PoolStats, or -1.
func fieldOf(name string) int {
	field, ok := reflect.TypeFor[redis.PoolStats]().FieldByName(name)
	if !ok {
		return -1
	}
	return field.Index[0]
}

// pipelineStats returns the statistics of the pipelines' own pool; the zero Value in versions that
// have none.
func pipelineStats(stats *redis.PoolStats) (pool reflect.Value) {
	if pipelinesField < 0 {
		return pool
	}
	return reflect.ValueOf(stats).Elem().Field(pipelinesField)
}
