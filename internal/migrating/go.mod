module github.com/accesslimit/accesslimit/internal/migrating

go 1.26.0

replace (
	github.com/accesslimit/accesslimit => ../../
	github.com/accesslimit/accesslimit/echo5limit => ../../echo5limit
	github.com/accesslimit/accesslimit/fiber3limit => ../../fiber3limit
	github.com/accesslimit/accesslimit/redisrate => ../../redisrate
)

require (
	github.com/accesslimit/accesslimit v0.0.0-00010101000000-000000000000
	github.com/accesslimit/accesslimit/echo5limit v0.0.0-00010101000000-000000000000
	github.com/accesslimit/accesslimit/fiber3limit v0.0.0-00010101000000-000000000000
	github.com/accesslimit/accesslimit/redisrate v0.0.0-00010101000000-000000000000
	github.com/go-chi/httprate v0.16.1
	github.com/go-redis/redis_rate/v10 v10.0.1
	github.com/gofiber/fiber/v2 v2.52.14
	github.com/gofiber/fiber/v3 v3.4.0
	github.com/labstack/echo/v4 v4.16.4
	github.com/labstack/echo/v5 v5.4.5
	github.com/redis/go-redis/v9 v9.20.0
	github.com/stretchr/testify v1.12.1
	github.com/ulule/limiter/v3 v3.11.2
	github.com/valyala/fasthttp v1.72.0
	golang.org/x/time v0.16.0
)

require (
	github.com/andybalholm/brotli v1.2.2 // indirect
	github.com/bmatcuk/doublestar/v4 v4.10.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/gofiber/schema v1.8.0 // indirect
	github.com/gofiber/utils/v2 v2.1.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/compress v1.19.0 // indirect
	github.com/klauspost/cpuid/v2 v2.4.0 // indirect
	github.com/labstack/gommon v0.5.0 // indirect
	github.com/mattn/go-colorable v0.1.15 // indirect
	github.com/mattn/go-isatty v0.0.22 // indirect
	github.com/mattn/go-runewidth v0.0.16 // indirect
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/rivo/uniseg v0.2.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	github.com/tinylib/msgp v1.6.4 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fasttemplate v1.2.2 // indirect
	github.com/zeebo/xxh3 v1.1.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)
