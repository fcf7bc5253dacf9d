package papertest_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/bench/internal/paper"
	"github.com/accesslimit/accesslimit/bench/internal/paper/papertest"
)

var text = paper.Style{Size: paper.TextSize, Color: paper.Ink}

func TestProblems(t *testing.T) {
	for want, draw := range map[string]func(*paper.Paper){
		"":                 func(p *paper.Paper) { p.Write(text, paper.End, 98, 50, "inside") },
		"leaves the frame": func(p *paper.Paper) { p.Write(text, paper.Start, 70, 50, "outside") },
		"touches a shape": func(p *paper.Paper) {
			p.Write(text, paper.Start, 10, 50, "across a bar")
			p.Box(paper.Dark, 70, 40, 90, 55)
		},
		`touches "below"`: func(p *paper.Paper) {
			p.WriteUpwards(text, 20, 50, "below")
			p.Write(text, paper.Center, 20, 50, "above")
		},
	} {
		var svg bytes.Buffer
		p := paper.New(100, 100)
		draw(p)
		if err := p.Save(&svg); err != nil {
			t.Fatal(err)
		}
		problems, err := papertest.Problems(svg.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(problems, "; "); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("found %q, want %q", got, want)
		}
	}
}
