// Package redisstore keeps counters in Redis.
//
// The counters of a call that lie on one shard are decided by one script call, EVALSHA, or EVAL if
// the server does not know the script yet. No other command is sent twice, because the first may
// have charged. A call returns by its deadline, whatever Redis does and however the client is
// configured.
//
// The path of a call:
//
//	Store.Do                  decide.go              for one shard, or
//	Store.decideAcross        decide.go              for several hash tags, if one server holds all keys
//	Store.decideOnShards      multishard.go          for several, with what is given back afterwards
//	router.shard              route.go               the server of a key; route_cluster.go
//	shard.beginDirect         shard.go               chooses: directly if few calls are on their way
//	Store.callDirectly        decide.go              a direct call
//	shard.runScript           script_call.go         until it has an answer
//	scriptCall.command        script_call.go         the command; script_args.go
//	shard.enqueue, serveLane  lane.go                other calls wait for the lane's next pipeline
//	pipeline.run              lane_pipeline.go       one round trip; lane_merge.go: equal calls
//	departure.leave           lane_departure.go      without calls that were told that they are unsent
//	manyCall.command          script_many.go         one script for calls on different keys, if one
//	                                                 server holds them all (one_server.go)
//	boundClient.process       client.go              sent once, and over by the deadline
//	breaker.run               breaker.go             unless the server did not answer before
//	connectivity.classify     connectivity.go        whether it was sent, and why not
//	clusterNode.redirect      client_redirect.go     to where a cluster's slot is now
//	scriptCall.retry          script_call.go         whether to send it again, in another form
//	scriptReply.readVerdicts  script_reply.go        the verdicts, in the scripts' order
//	Op.Read                   ../algorithm/reply.go  by NAME.go, from what the script found: found.go
//	toFailure                 failure.go             or why there are none
//
// operations.go has what is done after calls: Store.Change and Reset.
// commands.go has the commands for the lists of operators, which wait their turn (commands_turns.go).
package redisstore
