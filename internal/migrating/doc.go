// Package migrating tests what a service finds when it comes from another library: module redisrate
// beside redis_rate, and the code of MIGRATING.md. It is a module of its own because it needs those
// libraries.
package migrating
