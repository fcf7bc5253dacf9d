package console

import (
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

const (
	// samplePause is the time between two samples, and between two events of a stream.
	samplePause = 2 * time.Second
	// maxSamples is five minutes of samples, which the chart shows.
	maxSamples = 151
	// maxDetailed is one minute of samples, which still have the counts of each rule.
	maxDetailed = 31
)

// counts are the numbers of calls since the limiter was made.
type counts struct {
	Allowed     uint64 `json:"allowed"`
	Refused     uint64 `json:"refused"`
	Near        uint64 `json:"near_limit"`   // of the allowed ones
	Uncounted   uint64 `json:"uncounted"`    // because Redis did not answer
	WouldRefuse uint64 `json:"would_refuse"` // of the allowed ones; by rules in DryRun
}

// add counts decisions of one reason.
func (c *counts) add(reason core.Reason, n, near uint64) {
	c.Near += near
	switch reason {
	case core.Allowed, core.SoftExceeded:
		c.Allowed += n
	case core.DryRunExceeded:
		c.Allowed += n
		c.WouldRefuse += n
	case core.StoreFailOpen:
		c.Allowed += n
		c.Uncounted += n
	case core.StoreFailClosed:
		c.Refused += n
		c.Uncounted += n
	default:
		c.Refused += n
	}
}

// sample is what Stats said at one time.
type sample struct {
	at    time.Time
	all   counts
	rules map[string]counts // nil if the sample is older than a minute
	waits core.Histogram    // for Redis; empty if the sample is older than a minute
}

// figures are the samples of the last minutes. They make rates and the chart.
type figures struct {
	limiter *core.Limiter

	mu      sync.Mutex
	samples []sample // oldest first
}

func newFigures(limiter *core.Limiter) *figures {
	f := &figures{limiter: limiter}
	f.take()
	return f
}

// follow takes samples until the channel is closed.
func (f *figures) follow(closed <-chan struct{}, panicked func(error)) {
	ticker := time.NewTicker(samplePause)
	defer ticker.Stop()
	for {
		select {
		case <-closed:
			return
		case <-ticker.C:
			panics.Guard(f.take, panicked)()
		}
	}
}

// take takes a sample.
func (f *figures) take() {
	fresh := sampleOf(f.limiter.Stats(), time.Now())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.samples = append(f.samples, fresh)
	if len(f.samples) > maxSamples {
		f.samples = append(f.samples[:0], f.samples[1:]...)
	}
	if old := len(f.samples) - maxDetailed - 1; old >= 0 {
		f.samples[old].rules, f.samples[old].waits = nil, core.Histogram{}
	}
}

func sampleOf(stats core.Stats, at time.Time) sample {
	s := sample{at: at, rules: make(map[string]counts), waits: stats.StoreTime}
	for _, d := range stats.Decisions {
		of := s.rules[d.Rule]
		of.add(d.Reason, d.Count, d.Near)
		s.rules[d.Rule] = of
		s.all.add(d.Reason, d.Bound, d.Near)
	}
	return s
}

// minute returns the oldest sample that is at most a minute old.
func (f *figures) minute() sample {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.samples[max(0, len(f.samples)-maxDetailed)]
}

// since returns the calls per second between two samples, or 0 if they are too close.
func perSecond(now, then uint64, passed time.Duration) float64 {
	if now < then || passed < 100*time.Millisecond { // the counts of a removed rule restart
		return 0
	}
	return float64(now-then) / passed.Seconds()
}

// history returns the allowed and refused calls per second between consecutive samples.
func (f *figures) history() (allowed, refused []float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := 1; i < len(f.samples); i++ {
		then, now := &f.samples[i-1], &f.samples[i]
		passed := now.at.Sub(then.at)
		allowed = append(allowed, perSecond(now.all.Allowed, then.all.Allowed, passed))
		refused = append(refused, perSecond(now.all.Refused, then.all.Refused, passed))
	}
	return allowed, refused
}
