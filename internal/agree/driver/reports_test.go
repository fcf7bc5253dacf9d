package driver

import (
	"context"
	"strings"
	"time"
)

func (h *history) inspect(p *process, of int) {
	x, err := p.operator.Inspect(context.Background(), subject(of))
	h.notef("%s %s", showError(err), showExplanation(x, true))
}

// reports are looked at when a history ends.
var reports = []struct {
	name string
	do   func(h *history, p *process)
}{
	{"stats", func(h *history, p *process) { h.notef("%s", showStats(p.limiter.Stats())) }},
	{"inspect", func(h *history, p *process) {
		for of := range 3 {
			h.inspect(p, of)
		}
	}},
	{"bans", func(h *history, p *process) {
		all, _, err := p.operator.AllBans(context.Background(), "", 1000)
		h.notef("%s", showError(err))
		for _, b := range all {
			h.notef("%s", showBan(b))
		}
	}},
	{"overrides", func(h *history, p *process) {
		for _, name := range h.names() {
			overrides, err := p.operator.Overrides(name)
			if err != nil {
				continue
			}
			all, _, err := overrides.List(context.Background(), "", 1000)
			if err != nil {
				h.notef("%s", showError(err))
			}
			for _, o := range all {
				h.notef("%s", showOverride(o))
			}
		}
	}},
	{"top", func(h *history, p *process) {
		if h.stepped { // in which minute calls are listed is by chance then
			return
		}
		list, err := p.operator.Top(context.Background(), "", time.Hour)
		h.notef("%s %v", showError(err), list.Refused)
		h.notef("%v", list.Near)
	}},
	{"audit", func(h *history, p *process) {
		all, err := p.operator.Audit(context.Background(), "", 1000)
		h.notef("%s", showError(err))
		for _, e := range all {
			if strings.HasPrefix(string(e.Act), "override") {
				e.Before, e.After = "", "" // in the words of the version
			}
			h.notef("%s %s %q by %q note %q before %q after %q", e.Act, e.Rule, e.Subject, e.Author, e.Note, e.Before, e.After)
		}
	}},
	{"keys", func(h *history, _ *process) {
		if h.client != nil {
			h.notef("%v", h.client.expiries())
		}
	}},
}
