module github.com/accesslimit/accesslimit/cmd/accesslimit

go 1.26.0

replace github.com/accesslimit/accesslimit => ../..

require (
	github.com/accesslimit/accesslimit v0.0.0-00010101000000-000000000000
	github.com/redis/go-redis/v9 v9.20.0
	github.com/rogpeppe/go-internal v1.14.1
	github.com/urfave/cli/v3 v3.9.1
)

require (
	github.com/bmatcuk/doublestar/v4 v4.10.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/fsnotify/fsnotify v1.9.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/tools v0.26.0 // indirect
)
