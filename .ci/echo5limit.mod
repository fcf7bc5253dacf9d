module github.com/accesslimit/accesslimit/echo5limit

go 1.26.0

replace github.com/accesslimit/accesslimit => ../

require (
	github.com/accesslimit/accesslimit v0.0.0-00010101000000-000000000000
	github.com/labstack/echo/v5 v5.4.5
	github.com/redis/go-redis/v9 v9.23.0
)

require (
	github.com/bmatcuk/doublestar/v4 v4.10.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/time v0.15.0 // indirect
)
