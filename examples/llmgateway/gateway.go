package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync"

	"github.com/accesslimit/accesslimit/core"
)

// gateway forwards calls to a model.
type gateway struct {
	meters   []meter
	journal  *journal
	model    string // its URL
	settling sync.WaitGroup
}

// ServeHTTP implements http.Handler.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q, err := readQuestion(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	user, _ := core.UserFrom(r.Context())
	c, d, err := g.open(r.Context(), user, usage{Input: q.tokens(), Output: min(q.MaxTokens, 200)})
	if err != nil || !d.Allowed {
		refuse(w, d, err)
		return
	}
	stream, err := g.ask(r.Context(), q)
	if err != nil {
		if errors.Is(err, errNotBegun) {
			c.settle(usage{})
		}
		http.Error(w, "The model does not answer this.", http.StatusBadGateway)
		return
	}
	defer func() { _ = stream.Close() }()
	if used, err := c.forward(w, stream); err == nil {
		c.settle(used)
	}
}

// call is what a call has been charged, with a bill for each meter.
type call struct {
	*gateway
	bills    []*bill
	charged  usage
	streamed int // tokens
}

// open charges an estimate to all meters, or to none.
func (g *gateway) open(ctx context.Context, user string, estimate usage) (*call, core.Decision, error) {
	c := &call{gateway: g, charged: estimate}
	for _, m := range g.meters {
		b, d, err := g.journal.open(ctx, m, m.subject(user), m.permits(estimate))
		if err != nil || !d.Allowed {
			c.settle(usage{})
			return nil, d, err
		}
		c.bills = append(c.bills, b)
	}
	return c, core.Decision{Allowed: true}, nil
}

// refuse answers a call that was not charged.
func refuse(w http.ResponseWriter, d core.Decision, err error) {
	switch {
	case errors.Is(err, core.ErrCostExceedsLimit):
		http.Error(w, "The prompt is larger than its limit can ever allow.", http.StatusRequestEntityTooLarge)
	case err != nil:
		http.Error(w, "Tokens cannot be counted at the moment.", http.StatusServiceUnavailable)
	default:
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(d.RetryAfter.Seconds()))))
		http.Error(w, fmt.Sprintf("The limit %q of %v is used up.", d.Rule, d.Limit), http.StatusTooManyRequests)
	}
}

// forward copies the model's stream to the caller, and returns what the model has used.
func (c *call) forward(w http.ResponseWriter, stream io.Reader) (used usage, err error) {
	out, lines := http.NewResponseController(w), bufio.NewScanner(stream)
	for lines.Scan() {
		var p part
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			return used, err
		}
		if p.Usage != nil {
			return *p.Usage, nil
		}
		c.charge(p.Tokens)
		fmt.Fprintln(w, p.Text)
		if err := out.Flush(); err != nil {
			return used, err
		}
	}
	return used, cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
}

// charge charges more when a stream becomes longer than what was charged so far.
func (c *call) charge(tokens int) {
	for c.streamed += tokens; c.streamed > c.charged.Output; {
		more := usage{Output: 50}
		c.charged.Output += more.Output
		for i, b := range c.bills {
			b.add(c.meters[i].permits(more))
		}
	}
}

// settle settles all bills at what was used in all, in the background: nobody waits if Redis is slow.
func (c *call) settle(used usage) {
	c.settling.Go(func() {
		for i, b := range c.bills {
			b.settle(c.meters[i].permits(used))
		}
	})
}
