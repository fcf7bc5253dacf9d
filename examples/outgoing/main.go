// Command outgoing shows three processes with 100 workers that call one server together. The server
// allows 100 calls a second, then 50, then 80, and answers 429 beyond. Each second it prints how many
// it allows, has answered, and has refused.
//
//	REDIS_URL=redis://localhost:6379 go run ./examples/outgoing -seconds 10
//
// Without Redis each process keeps the whole limit, and learns from refusals alone.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/examples/internal/example"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

func main() {
	server := flag.String("server", "", "be one of the processes that call the server at this `URL`")
	seconds := flag.Int("seconds", 10, "how long the server allows each `number` of calls")
	flag.Parse()
	run := func() error { return show(*seconds) }
	if *server != "" {
		run = func() error { return work(*server, 34) }
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// work calls a server from many goroutines, until standard input ends.
func work(server string, workers int) error {
	limiter, err := example.Limiter()
	if err != nil {
		return err
	}
	defer limiter.Close()
	turns, err := outgoing.New(limiter, outgoing.Rule{Name: "server", Limit: core.PerSecond(97).Bucket(2), InFlight: 10, MaxWait: time.Minute})
	if err != nil {
		return err
	}
	client := &http.Client{Transport: turns.Transport(http.DefaultTransport)}
	for range workers {
		go func() {
			for {
				call(client, server)
			}
		}()
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func call(client *http.Client, server string) {
	response, err := client.Get(server)
	if err != nil {
		log.Print(err)
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}

// server counts what it answers and refuses.
type server struct {
	allowed           atomic.Int64 // a second
	answered, refused atomic.Int64
}

// show starts a server and the processes that call it, and prints what the server counts.
func show(seconds int) error {
	s := new(server)
	s.allowed.Store(100)
	limiter, err := core.New(core.Options{})
	if err != nil {
		return err
	}
	defer limiter.Close()
	listener := httptest.NewServer(s.limited(limiter))
	defer listener.Close()
	var processes sync.WaitGroup
	defer processes.Wait()
	for range 3 {
		stop, err := start(&processes, listener.URL)
		if err != nil {
			return err
		}
		defer stop()
	}
	fmt.Println("allowed  answered  refused")
	for _, allowed := range []int64{100, 50, 80} {
		s.allowed.Store(allowed)
		for range seconds {
			time.Sleep(time.Second)
			fmt.Printf("%7d  %8d  %7d\n", allowed, s.answered.Swap(0), s.refused.Swap(0))
		}
	}
	return nil
}

// limited returns the server's handler.
func (s *server) limited(limiter *core.Limiter) http.Handler {
	rule := core.Rule{Name: "server", Limit: core.PerSecond(100).Bucket(100), LimitFor: func(core.Request) (core.Limit, error) {
		n := int(s.allowed.Load())
		return core.PerSecond(n).Bucket(n), nil
	}}
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { s.answered.Add(1) })
	limited := nethttplimit.New(limiter, rule)(answer)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { limited.ServeHTTP(&counting{w, s}, r) })
}

// counting counts the refusals that are sent through it.
type counting struct {
	http.ResponseWriter
	server *server
}

// WriteHeader implements http.ResponseWriter.
func (c *counting) WriteHeader(status int) {
	if status == http.StatusTooManyRequests {
		c.server.refused.Add(1)
	}
	c.ResponseWriter.WriteHeader(status)
}

// start starts a process that calls a server until stop is called.
func start(running *sync.WaitGroup, url string) (stop func(), err error) {
	process := exec.Command(os.Args[0], "-server", url)
	process.Stderr = os.Stderr
	input, err := process.StdinPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		return nil, err
	}
	running.Go(func() { _ = process.Wait() })
	return func() { _ = input.Close() }, nil
}
