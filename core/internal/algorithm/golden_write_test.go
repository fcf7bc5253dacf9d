package algorithm_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// goldenWriter draws a history.
type goldenWriter struct {
	*goldenPlayer
	*rand.Rand
	terms   []goldenLimit
	now     int64
	charges []goldenStep // that give back what was charged
	holders int
}

// writeGolden writes the histories of an algorithm, or "all" of them.
func writeGolden(t *testing.T, only string) {
	s := startServer(t)
	for _, kind := range algorithm.Kinds() {
		tag, families := kind.Tag(), goldenLimits(kind)
		if kind == algorithm.QuietPeriod || only != "all" && only != tag {
			continue
		}
		var histories []golden
		for n, terms := range families {
			for seed := range uint64(3) {
				w := &goldenWriter{goldenPlayer: newGoldenPlayer(t, s, terms), Rand: rand.New(rand.NewPCG(seed, uint64(n))), terms: terms, now: early}
				histories = append(histories, w.history())
			}
		}
		text, err := json.Marshal(histories)
		if err == nil { // a line for each, so that a change can be read
			text = append(bytes.ReplaceAll(text, []byte(`{"Limits"`), []byte("\n"+`{"Limits"`)), '\n')
			err = os.WriteFile(filepath.Join("testdata", "golden", tag+".json"), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (w *goldenWriter) history() (h golden) {
	h.Limits = w.terms
	counters := 1
	if w.terms[0].Ban != nil {
		counters = len(w.terms)
	}
	w.put(make([]goldenState, counters))
	for range 25 {
		w.step()
	}
	for h.Before = w.states(counters); empty(h.Before); h.Before = w.states(counters) {
		w.step()
	}
	w.now += w.Int64N(3) * w.span() / 40
	for range 12 {
		h.Steps = append(h.Steps, w.step())
	}
	h.After = w.states(counters)
	return h
}

func empty(states []goldenState) bool {
	return states[0].Values == nil && states[0].Scores == nil
}

func (w *goldenWriter) span() int64 { return max(w.terms[0].Window, 1001) }

// step draws a step and executes it.
func (w *goldenWriter) step() goldenStep {
	step := w.draw()
	if step.Now = w.now; step.Charge != nil && step.Charge.At > w.now {
		step.Now, w.now = step.Charge.At, step.Charge.At
	}
	step.Want = w.play(&step)
	if step.Do == "charge" || step.Do == "reserve" {
		w.note(step)
	}
	span := w.span()
	w.now += []int64{0, 1, span / 64, span / 32, span / 9, span / 3, span, -1, -span / 5}[w.IntN(9)]
	return step
}

func (w *goldenWriter) draw() goldenStep {
	c := goldenCounter{Limit: w.IntN(len(w.terms)), Cost: 1 + w.Int64N(2)}
	if w.terms[0].Max > 1000 {
		c.Cost = 1 + w.Int64N(w.terms[0].Max/4)
	}
	if w.IntN(12) == 0 {
		c.Limit = 0
	}
	do, number := []string{"charge", "charge", "charge", "look", "give back"}[w.IntN(5)], int64(0)
	switch tag := w.terms[0].Tag; tag {
	case "bn1":
		return w.drawBan()
	case "cc1":
		if w.holders++; w.IntN(4) == 0 {
			w.holders -= w.IntN(3)
		}
		c.Cost, c.Mark = 1, "holder-"+string(rune('a'+w.holders%26))
		if w.IntN(5) == 0 {
			do = "renew"
		}
	case "sl2":
		c.Mark = []string{"", "a note"}[w.IntN(2)]
		if w.IntN(7) == 0 {
			do = "records"
		}
	case "tb3":
		if w.IntN(6) == 0 {
			do, number = "reserve", w.Int64N(2*w.span())
		}
		fallthrough
	default:
		if w.IntN(4) == 0 {
			do, number = "crowd", 1+w.Int64N(6)
		}
	}
	if do == "give back" {
		if len(w.charges) == 0 {
			do = "charge"
		} else {
			return w.charges[w.IntN(len(w.charges))]
		}
	}
	return goldenStep{Do: do, Number: number, Counters: []goldenCounter{c}}
}

// drawBan draws a call on a ban and the counters that it watches. The ban comes last, but has the
// first key.
func (w *goldenWriter) drawBan() goldenStep {
	watched, ban := goldenCounter{Key: 1, Limit: 1, Cost: 1}, goldenCounter{Watched: []int{0}}
	switch w.IntN(9) {
	case 0:
		return goldenStep{Do: "ban", Number: w.span(), Counters: []goldenCounter{ban}}
	case 1:
		return goldenStep{Do: "look", Counters: []goldenCounter{watched, ban}}
	}
	return goldenStep{Do: "charge", Counters: []goldenCounter{watched, ban}}
}

// note records what a step charged, so that it can be given back, sometimes in parts.
func (w *goldenWriter) note(step goldenStep) {
	if step.Counters[0].Key != 0 {
		return
	}
	c, v := step.Counters[0], step.Want
	charge := &goldenCharge{At: step.Now}
	switch {
	case step.Do == "reserve" && v[1] == 0:
		charge.Position = v[5]
	case step.Do == "charge" && v[0] == 0:
		charge.Position = v[3]
	default:
		return
	}
	if c.Cost > 1 && w.IntN(2) == 0 {
		c.Cost, charge.Given = c.Cost/2, c.Cost-c.Cost/2
	}
	w.charges = append(w.charges, goldenStep{Do: "give back", Counters: []goldenCounter{c}, Charge: charge})
}
