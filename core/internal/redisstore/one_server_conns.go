package redisstore

import (
	"reflect"

	"github.com/redis/go-redis/v9"
)

// connCount is how many connections are in a client's pools, and how many were there before. Each
// connection that is made gets into a pool and leaves it once. So the sum is how many were made:
// for commands, in the background (MinIdleConns), or too late for the command that wanted it.
// PoolStats.Misses counts only the first of these.
type connCount struct{ present, removed uint32 }

// made returns how many connections were made. It is one too many for each that was removed while
// they were counted, but never one too few.
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

// connsMade returns how many connections were made, exactly.
func connsMade(client *redis.Client) uint32 {
	before := countConns(client)
	for {
		c := countConns(client)
		if c.removed == before.removed { // so none was, while those present were counted
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
