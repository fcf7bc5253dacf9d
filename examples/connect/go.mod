module github.com/accesslimit/accesslimit/examples/connect

go 1.26.0

replace (
	github.com/accesslimit/accesslimit => ../../
	github.com/accesslimit/accesslimit/connectlimit => ../../connectlimit
)

require (
	connectrpc.com/connect v1.21.1
	github.com/accesslimit/accesslimit v0.0.0-00010101000000-000000000000
	github.com/accesslimit/accesslimit/connectlimit v0.0.0-00010101000000-000000000000
	google.golang.org/grpc v1.83.2
)

require (
	github.com/bmatcuk/doublestar/v4 v4.10.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/redis/go-redis/v9 v9.20.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260526163538-3dc84a4a5aaa // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
