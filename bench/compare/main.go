// Command compare measures this library beside others, in one run on one machine. It writes the
// figures into results.tsv, and draws RESULTS.md and the charts from that file.
//
//	go run ./compare [-quick]
//	go run ./compare -redraw    only RESULTS.md and the charts, from results.tsv
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/accesslimit/accesslimit/bench/harness"
)

const figuresFile, pageFile, chartsFolder = "results.tsv", "RESULTS.md", "charts"

func main() {
	log.SetFlags(0)
	quick := flag.Bool("quick", false, "a short run: less of everything")
	redraw := flag.Bool("redraw", false, "redraw RESULTS.md and the charts from results.tsv, and measure nothing")
	only := flag.String("only", "", "measure only the parts whose names contain this, print the figures, and write nothing")
	flag.Parse()
	b := &bench{settings: full, report: newReport()}
	if *quick {
		b.settings = short
	}
	b.only = *only
	run := b.run
	if *redraw {
		run = redrawAll
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// background is the context of calls that have no deadline.
var background = context.Background()

// bench is a run of everything.
type bench struct {
	settings
	server *harness.Server
	report
}

func (b *bench) run() error {
	parts, err := b.chosen()
	if err != nil {
		return err
	}
	if b.server, err = harness.StartServer(); err != nil {
		return err
	}
	defer b.server.Stop()
	stopOnSignal(b.server)
	return b.measureAll(parts)
}

// measureAll measures parts, and writes the figures after each of them, so that they are kept
// whatever happens later. A part that fails does not stop the others.
func (b *bench) measureAll(parts []part) (failed error) {
	for _, part := range parts {
		began := time.Now()
		if err := part.measure(); err != nil {
			err = fmt.Errorf("%s: %w", part.name, err)
			log.Print(err)
			failed = errors.Join(failed, err)
			continue
		}
		log.Printf("%-44s %5.1f s", part.name, time.Since(began).Seconds())
		if b.only == "" {
			failed = errors.Join(failed, b.write())
		}
	}
	if b.only != "" {
		fmt.Print(b.results(b.server.Version()))
	}
	return failed
}

// write writes the figures so far, and what is drawn from them.
func (b *bench) write() error {
	figures := b.results(b.server.Version())
	if err := os.WriteFile(figuresFile, []byte(figures.String()), 0o644); err != nil {
		return err
	}
	return redrawAll()
}

// redrawAll writes RESULTS.md and the charts from results.tsv, so that neither shows a figure that is
// not on record.
func redrawAll() error {
	text, err := os.ReadFile(figuresFile)
	if err != nil {
		return err
	}
	figures, err := readResults(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", figuresFile, err)
	}
	if err := os.WriteFile(pageFile, []byte(figures.text()), 0o644); err != nil {
		return err
	}
	return figures.drawCharts(chartsFolder)
}

// part is a part of a run, which can be chosen by its name.
type part struct {
	name    string
	measure func() error
}

// chosen returns the parts to measure.
func (b *bench) chosen() (chosen []part, err error) {
	var names []string
	for _, p := range b.parts() {
		names = append(names, p.name)
		if strings.Contains(p.name, b.only) {
			chosen = append(chosen, p)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no part has %q in its name: %s", b.only, strings.Join(names, ", "))
	}
	return chosen, nil
}

func (b *bench) parts() (all []part) {
	for _, same := range together {
		names := make([]string, len(same))
		for i, w := range same {
			names[i] = w.name
		}
		all = append(all, part{strings.Join(names, "; "), func() error { return b.onRedis(same) }})
	}
	return append(all,
		part{masters, b.clusters},
		part{"in the process", b.inThisProcess},
		part{"heap of a key", b.heap},
		part{"middlewares", b.middlewares},
		part{"time of the server", b.serverTime},
		part{"memory in Redis", b.memory})
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
