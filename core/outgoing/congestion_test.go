package outgoing

import (
	"math"
	"testing"
	"time"
)

// Each pause cuts the pace, and a pause soon after another one cuts it more. Refusals during a pause
// count once. The pace rises to nearly that before the pause, and after a minute above it.
func TestThePaceAfterPauses(t *testing.T) {
	const second = time.Second
	began := time.Now()
	var c congestion
	for _, step := range []struct {
		at, pause time.Duration // 0: there is none
		want      float64
	}{
		{0, 0, 1},
		{0, second, 0.9},
		{second / 2, second / 4, 0.9}, // ends earlier
		{second * 3 / 4, second, 0.9}, // ends later
		{21*second + second*3/4, 0, 0.97},
		{60 * second, 0, 0.97},
		{60 * second, second, 0.97 * 0.9},
		{61*second + second/2, second, 0.97 * 0.9 * 0.8},
		{1000 * second, 0, 1},
	} {
		now := began.Add(step.at)
		if step.pause > 0 {
			c.paused(now, step.pause)
		}
		if got := c.pace(now); math.Abs(got-step.want) > 0.005 {
			t.Errorf("after %v the pace is %.3f, want %.3f", step.at, got, step.want)
		}
	}
}

// After a server was down for a while, so that each probe failed, calls are as fast as before within
// two minutes.
func TestThePaceAfterAnOutage(t *testing.T) {
	for _, reply := range []time.Duration{10 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second} {
		now := time.Now()
		var c congestion
		for range 1000 {
			c.paused(now, time.Minute)
			now = now.Add(time.Minute + reply)
		}
		if got := c.pace(now); got < slowest || got > 0.25 {
			t.Errorf("the pace is %v", got)
		}
		if got := c.pace(now.Add(2 * time.Minute)); got < 1 {
			t.Errorf("after two minutes the pace is %v", got)
		}
	}
}
