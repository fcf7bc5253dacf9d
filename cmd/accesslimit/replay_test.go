package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// traffic writes the access log of a day: people, somebody who tries passwords, and a program that fetches
// all pages.
func traffic(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: traffic FILE")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), trafficLog(), 0o644))
}

// visit is a call in the log.
type visit struct {
	at      time.Time
	from    string
	request string
	status  int
}

func trafficLog() []byte {
	draw := rand.New(rand.NewPCG(27, 27))
	day := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	var all []visit
	for range 20_000 {
		hour := 13 + 9*math.Sin(draw.Float64()*2*math.Pi)*draw.Float64()
		v := visit{day.Add(time.Duration(hour * float64(time.Hour))), fmt.Sprintf("203.0.113.%d", int(draw.ExpFloat64()*30)%250), "GET /items/7", 200}
		if draw.IntN(40) == 0 {
			v.request, v.status = "POST /login", []int{200, 200, 200, 401}[draw.IntN(4)]
		}
		all = append(all, v)
	}
	for i := range 180 {
		all = append(all, visit{day.Add(15*time.Hour + time.Duration(i)*7*time.Second), "198.51.100.23", "POST /login", 401})
	}
	for i := range 1200 {
		all = append(all, visit{day.Add(9*time.Hour + time.Duration(i)*400*time.Millisecond), "192.0.2.44", fmt.Sprintf("GET /items/%d", i), 200})
	}
	slices.SortStableFunc(all, func(a, b visit) int { return cmp.Compare(a.at.Unix(), b.at.Unix()) })
	var b strings.Builder
	for _, v := range all {
		fmt.Fprintf(&b, "%s - - [%s] \"%s HTTP/1.1\" %d 512 \"-\" \"Mozilla/5.0\"\n", v.from, v.at.Format("02/Jan/2006:15:04:05 -0700"), v.request, v.status)
	}
	return []byte(b.String())
}

// readmeRules returns the path of the rules on the page, in a folder of their own.
func readmeRules(t *testing.T) string {
	_, text, _ := strings.Cut(read(t, "testdata/files/replay_readme.txtar"), "-- limits.yaml --\n")
	text, _, _ = strings.Cut(text, "-- ")
	rules := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(rules, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return rules
}

// The picture on the page is the one that the command on the page draws.
func TestReplayPicture(t *testing.T) {
	rules := readmeRules(t)
	dir := filepath.Dir(rules)
	log, drawn := filepath.Join(dir, "access.log"), filepath.Join(dir, "calls.svg")
	if err := os.WriteFile(log, trafficLog(), 0o644); err != nil {
		t.Fatal(err)
	}
	app := newApp()
	app.Writer = new(strings.Builder)
	if err := app.Run(t.Context(), []string{"accesslimit", "replay", "-rules", rules, "-count", "failed=401", "-svg", drawn, log}); err != nil {
		t.Fatal(err)
	}
	picture := strings.ReplaceAll(read(t, drawn), dir+"/", "")
	if *update {
		if err := os.WriteFile("calls.svg", []byte(picture), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if picture != read(t, "calls.svg") {
		t.Error("calls.svg is not what the command draws: run the test with -update")
	}
}

// An interrupt ends the command, even while standard input is silent.
func TestReplayIsInterrupted(t *testing.T) {
	silent, writer := io.Pipe()
	defer writer.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	app := newApp()
	app.Reader = readerFunc(func(p []byte) (int, error) {
		interrupt()
		return silent.Read(p)
	})
	err := untilInterrupted(ctx, func() error { return app.Run(ctx, []string{"accesslimit", "replay", "-rules", readmeRules(t), "-"}) })
	var said strings.Builder
	if status := report(&said, err); status != exitFound || said.String() != "accesslimit: interrupted\n" {
		t.Errorf("%d: %s", status, said.String())
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Progress is shown on a terminal, and not in a file.
func TestProgress(t *testing.T) {
	logs := &openedLogs{size: 200}
	logs.read.Store(50)
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if logs.progress(file) != nil {
		t.Error("progress is shown in a file")
	}
	logs.endProgress(file)
	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // it is a device, too
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	show := logs.progress(terminal)
	if show == nil {
		t.Fatal("no progress is shown on a device")
	}
	if show(1000); logs.shown.IsZero() {
		t.Error("nothing was shown")
	}
	if got := logs.progressLine(1000); got != "1000 lines, 25 %" {
		t.Errorf("%q", got)
	}
	if got := new(openedLogs).progressLine(7); got != "7 lines" {
		t.Errorf("%q", got)
	}
}
