package rivals

import (
	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/bench/harness"
)

// onAutoPipeline returns a rival on the pipeliner that go-redis itself has, which is experimental: it sends
// what many goroutines ask at once in pipelines. It has two forms. In half duplex, a pipeline waits for the
// replies to the one before. In full duplex, it does not.
func onAutoPipeline(name string, fullDuplex bool, on func(redis.Cmdable, Limit) harness.AllowFunc) Redis {
	name += OnAutoPipeline
	if fullDuplex {
		name += FullDuplex
	}
	return Redis{Name: name, Open: func(p Place, l Limit) (Opened, error) {
		client := redis.NewClient(&redis.Options{Addr: p.Addr, DB: p.DB, Dialer: p.dial})
		options := redis.DefaultBlockingAutoPipelineOptions()
		options.FullDuplex = fullDuplex
		pipeliner, err := client.AutoPipelineWithOptions(options)
		if err != nil {
			return Opened{}, err
		}
		return Opened{Allow: on(pipeliner, l), Close: func() {
			_ = pipeliner.Close()
			_ = client.Close()
		}}, nil
	}}
}
