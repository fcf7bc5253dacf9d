package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// pipeline is the calls of a lane that leave together. The lane's next pipeline uses its memory
// again.
type pipeline struct {
	calls   []*laneCall
	groups  []group
	table   []int32 // a hash table of the groups that can take further calls: index + 1, or 0
	cmds    []redis.Cmder
	pending []int // the groups that have no answer yet

	answered      bool // the server answered a call
	unknownScript bool // the server did not know a script
}

// run sends the calls, and waits for the replies.
func (p *pipeline) run(s *shard, l *lane, calls []*laneCall) {
	p.calls, p.answered, p.unknownScript = append(p.calls[:0], calls...), false, false
	p.groupCalls()
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	p.pending = p.pending[:0]
	for i := range p.groups {
		g := &p.groups[i]
		g.prepare()
		g.unsent = &l.unsent
		p.pending = append(p.pending, i)
	}
	for trips := 0; len(p.pending) > 0; trips++ {
		err := p.send(ctx, s)
		s.trips.count(err, trips, len(p.calls), len(p.groups))
	}
	if p.answered {
		s.server.answered(p.unknownScript)
	}
}

// send makes one round trip with the groups that are pending. It returns errBreakerOpen if the
// breaker prevented that.
func (p *pipeline) send(ctx context.Context, s *shard) error {
	p.cmds = p.cmds[:0]
	for _, i := range p.pending {
		p.cmds = append(p.cmds, p.groups[i].command(ctx))
	}
	if err := s.pipelines.processAll(ctx, p.cmds); err != nil {
		for _, i := range p.pending {
			p.groups[i].err = err
		}
		p.pending = nil
		return err
	}
	pending := p.pending[:0]
	for n, i := range p.pending {
		g := &p.groups[i]
		again, err := g.retry(p.cmds[n].Err())
		if g.err = err; again {
			pending = append(pending, i)
		}
		p.answered, p.unknownScript = p.answered || err == nil, p.unknownScript || g.wasUnknown
	}
	p.pending = pending
	return nil
}

// finish hands out the replies.
func (p *pipeline) finish() {
	for _, c := range p.calls {
		g := &p.groups[c.group]
		if g.err == nil {
			c.reply = g.reply()
		}
		c.finish(g.err)
	}
	clear(p.calls)
}
