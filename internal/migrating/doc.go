// Package migrating tests what a service finds when it comes from another library, or from another
// version of its framework: module redisrate beside redis_rate, the code of MIGRATING.md, and adapters
// for two versions of a framework in one process. It is a module of its own because it needs those
// libraries.
package migrating
