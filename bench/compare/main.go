// Command compare measures this library beside others, in one run on one machine, and writes
// RESULTS.md and the charts.
//
//	go run ./compare [-quick]
//	go run ./compare -redraw    only the charts, from the figures in RESULTS.md
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

func main() {
	log.SetFlags(0)
	quick := flag.Bool("quick", false, "a short run: less of everything, and nothing about how it grows")
	results := flag.String("results", "RESULTS.md", "the file for all tables")
	charts := flag.String("charts", "charts", "the directory for the charts")
	redraw := flag.Bool("redraw", false, "redraw the charts from the results file, and measure nothing")
	only := flag.String("only", "", "measure only the parts whose names contain this, print the results, and write nothing")
	worker := flag.Bool("worker", false, "run as one of several processes: read a job and do it")
	flag.Parse()
	if *worker {
		if err := work(os.Stdin, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	if *redraw {
		if err := redrawCharts(*results, *charts); err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := compare(*quick, *only, *results, *charts); err != nil {
		log.Fatal(err)
	}
}

// background is the context of the harness's own calls to the servers.
var background = context.Background()

// bench is a run of everything.
type bench struct {
	settings
	server *harness.Server
	report
}

func compare(quick bool, only, results, charts string) error {
	b := &bench{settings: full, report: newReport()}
	if quick {
		b.settings = short
	}
	b.only = only
	sections, err := b.chosen()
	if err != nil {
		return err
	}
	if b.server, err = harness.StartServer(); err != nil {
		return err
	}
	server := b.server
	defer server.Stop()
	stopOnSignal(server)
	for _, section := range sections {
		began := time.Now()
		if err := section.measure(); err != nil {
			return fmt.Errorf("%s: %w", section.name, err)
		}
		log.Printf("%-44s %5.1f s", section.name, time.Since(began).Seconds())
	}
	text := b.text(server.Version())
	fmt.Println(text)
	if only != "" {
		return nil
	}
	if err := os.WriteFile(results, []byte(text), 0o644); err != nil {
		return err
	}
	return drawCharts(charts, []byte(text))
}

func redrawCharts(results, charts string) error {
	text, err := os.ReadFile(results)
	if err != nil {
		return err
	}
	return drawCharts(charts, text)
}

type section struct {
	name    string
	measure func() error
}

// chosen returns the sections to measure.
func (b *bench) chosen() (chosen []section, err error) {
	var names []string
	for _, s := range b.sections() {
		names = append(names, s.name)
		if strings.Contains(s.name, b.only) {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no part has %q in its name: %s", b.only, strings.Join(names, ", "))
	}
	return chosen, nil
}

func (b *bench) sections() (all []section) {
	for _, same := range together {
		var names []string
		for _, w := range same {
			names = append(names, w.name)
		}
		all = append(all, section{strings.Join(names, "; "), func() error { return b.onRedis(same) }})
	}
	all = append(all,
		section{"processes", b.processes},
		section{"another client", b.bystander},
		section{"in the process", b.inThisProcess},
		section{"heap of a key", b.heap},
		section{"middlewares", b.middlewares},
		section{"time of the server", b.serverCost},
		section{"memory in Redis", b.memory})
	if !b.quick {
		all = append(all,
			section{"how it grows with keys", b.growKeys},
			section{"how it grows with Max", b.growMax},
			section{"how it grows with masters", b.growMasters})
	}
	return all
}

// stopOnSignal stops the server when this program is interrupted.
func stopOnSignal(server *harness.Server) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		server.Stop()
		os.Exit(1)
	}()
}

// place is the first database of the server.
func (b *bench) place() rivals.Place { return rivals.Place{Addrs: b.server.Addrs()} }

// placeOn is one of the databases of a server that are not the first, or a cluster. Rivals that are
// measured in turns have one each.
func placeOn(server *harness.Server, n int) rivals.Place {
	if server.Cluster {
		return rivals.Place{Addrs: server.Addrs(), Cluster: true}
	}
	return rivals.Place{Addrs: server.Addrs(), DB: n + 1}
}
