// Command metrics is a net/http service whose limits can be watched. Prometheus scrapes one of two
// paths, which show the same figures:
//
//	/metrics  by promlimit
//	/otel     by otellimit and OpenTelemetry's exporter for Prometheus
//
// Settings:
//
//	ADDR       where to listen: host:port; :8080 unless set
//	REDIS_URL  redis://localhost:6379; if unset, the process counts for itself
package main

import (
	"cmp"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/nethttplimit"
	"github.com/accesslimit/accesslimit/otellimit"
	"github.com/accesslimit/accesslimit/promlimit"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	options := core.Options{OnDecision: otellimit.SetAttributes}
	if url := os.Getenv("REDIS_URL"); url != "" {
		settings, err := redis.ParseURL(url)
		if err != nil {
			return fmt.Errorf("REDIS_URL: %w", err)
		}
		settings.DialerRetries = 1
		options.Redis = redis.NewClient(settings)
	}
	limiter, err := core.New(options)
	if err != nil {
		return err
	}
	defer limiter.Close()
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "Hello.") })
	mux := http.NewServeMux()
	mux.Handle("GET /hello", nethttplimit.New(limiter, core.Rule{Name: "hello", Seconds: 10, MaxCount: 5})(hello))
	if err := addMetrics(mux, map[string]*core.Limiter{"default": limiter}); err != nil {
		return err
	}
	return http.ListenAndServe(cmp.Or(os.Getenv("ADDR"), ":8080"), mux)
}

// addMetrics adds the two paths, with the figures of limiters by their names. A service needs one
// of the two.
func addMetrics(mux *http.ServeMux, limiters map[string]*core.Limiter) error {
	collectors, exported := prometheus.NewRegistry(), prometheus.NewRegistry()
	var storeTime otellimit.StoreTime
	reader, err := exporter.New(exporter.WithRegisterer(exported), exporter.WithProducer(&storeTime))
	if err != nil {
		return err
	}
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	for name, limiter := range limiters {
		if err := collectors.Register(promlimit.NewCollector(limiter, promlimit.Options{Name: name})); err != nil {
			return err
		}
		options := otellimit.Options{Name: name, MeterProvider: provider, StoreTime: &storeTime}
		if _, err := otellimit.Observe(limiter, options); err != nil {
			return err
		}
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(collectors, promhttp.HandlerOpts{}))
	mux.Handle("GET /otel", promhttp.HandlerFor(exported, promhttp.HandlerOpts{}))
	return nil
}
