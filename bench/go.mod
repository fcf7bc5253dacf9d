module github.com/accesslimit/accesslimit/bench

go 1.26.0

replace github.com/accesslimit/accesslimit => ../

require (
	github.com/accesslimit/accesslimit v0.0.0-00010101000000-000000000000
	github.com/redis/go-redis/v9 v9.20.0
	golang.org/x/image v0.47.0
	golang.org/x/sync v0.24.0
	gonum.org/v1/plot v0.17.0
)

require (
	codeberg.org/go-fonts/liberation v0.5.0 // indirect
	codeberg.org/go-latex/latex v0.2.0 // indirect
	github.com/ajstarks/svgo v0.0.0-20211024235047-1546f124cd8b // indirect
	github.com/bmatcuk/doublestar/v4 v4.10.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)
