package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/histogram"
)

// pipeline holds the calls of a lane that leave together. The lane's next pipeline reuses its
// memory.
type pipeline struct {
	calls  []*laneCall
	groups []group
	table  []int32 // a hash table of the groups that can take further calls: index + 1, or 0

	// The fields of one round trip.
	cmds  []redis.Cmder // the commands of many, then those of alone
	many  []manyCall
	alone []*group // each has a script of its own

	times histogram.Batch

	answered      bool // the server answered a call
	unknownScript bool // the server did not know a script
	sendText      bool // the text of decide.lua instead of its hash
}

// run sends the calls, and waits for the replies.
func (p *pipeline) run(s *shard, l *lane, calls []*laneCall) {
	p.calls, p.answered, p.unknownScript, p.sendText = append(p.calls[:0], calls...), false, false, false
	p.prepareGroups(s, l)
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	for trips := 0; p.chooseCommands(ctx, s, &l.departure); trips++ {
		err := p.send(ctx, s, l)
		s.trips.count(err, trips, len(p.calls), len(p.groups))
	}
	if p.answered {
		s.server.answered(p.unknownScript)
	}
}

// prepareGroups groups the calls, and chooses a script for each group.
func (p *pipeline) prepareGroups(s *shard, l *lane) {
	p.groupCalls()
	joins := s.proof.wanted()
	s.joins.Store(joins)
	for i := range p.groups {
		g := &p.groups[i]
		g.prepare()
		g.departure = &l.departure
		g.joins = joins && g.op.Joins()
	}
}

// recall prepares a recalled pipeline again, without the calls that have ended.
func (p *pipeline) recall(s *shard, l *lane) {
	s.mu.Lock() // so that the timer has ended all that it told to be unsent
	p.calls = slices.DeleteFunc(p.calls, func(c *laneCall) bool { return c.state.Load() != stateWaiting })
	s.mu.Unlock()
	p.prepareGroups(s, l)
}

// chooseCommands makes the commands of the next round trip, and reports whether there are any.
func (p *pipeline) chooseCommands(ctx context.Context, s *shard, leaves *departure) bool {
	p.cmds, p.alone = p.cmds[:0], p.alone[:0]
	p.fillManyCalls(s)
	for i := range p.many {
		p.cmds = append(p.cmds, p.many[i].command(ctx, p.sendText, leaves))
	}
	for i := range p.groups {
		if g := &p.groups[i]; !g.finished && !g.joins {
			p.alone, p.cmds = append(p.alone, g), append(p.cmds, g.command(ctx))
		}
	}
	return len(p.cmds) > 0
}

// fillManyCalls distributes the groups that can be decided together over calls of decide.lua.
func (p *pipeline) fillManyCalls(s *shard) {
	p.many = p.many[:0]
	most := 0
	for i := range p.groups {
		g := &p.groups[i]
		if g.finished || !g.joins {
			continue
		}
		if most == 0 {
			most = s.manySize.keys()
		}
		if n := len(p.many); n == 0 || !p.many[n-1].add(g, s.common, most) {
			p.dropSingle()
			n = len(p.many)
			p.many = slices.Grow(p.many, 1)[:n+1]
			p.many[n].reset()
			p.many[n].add(g, s.common, most)
		}
	}
	p.dropSingle()
}

// dropSingle sends the group of the last manyCall alone if it is the only group there and has one
// key, because a script for one key is faster.
func (p *pipeline) dropSingle() {
	if n := len(p.many) - 1; n >= 0 && len(p.many[n].hashes) == 1 {
		p.many[n].groups[0].joins = false
		p.many = p.many[:n]
	}
}

// send makes one round trip with the commands. If the breaker prevents the round trip, send returns
// errBreakerOpen.
func (p *pipeline) send(ctx context.Context, s *shard, l *lane) error {
	sent := time.Since(s.start)
	if err := s.pipelines.processAll(ctx, p.cmds); err != nil {
		for i := range p.groups {
			if g := &p.groups[i]; !g.finished {
				g.finish(err)
			}
		}
		return err
	}
	if l.takeRecall() {
		p.recall(s, l)
		return nil
	}
	sentText, decided := p.sendText, 0
	for i := range p.many {
		decided += p.readMany(s, &p.many[i], sentText)
	}
	if decided > 0 {
		s.manySize.observe(decided, sent, time.Since(s.start))
	}
	for i, g := range p.alone {
		p.readAlone(g, p.cmds[len(p.many)+i].Err())
	}
	return nil
}

// readMany reads the reply to a manyCall, and returns how many keys it decided.
func (p *pipeline) readMany(s *shard, m *manyCall, sentText bool) (decided int) {
	switch err := m.cmd.Err(); {
	case isReply(err, "NOSCRIPT") && !sentText:
		p.sendText, p.unknownScript = true, true
	case isManyRefused(err):
		s.proof.refute(err)
		m.separate()
	case isWriteRefused(err): // refused calls need no write, so they are answered separately
		s.proof.end()
		m.separate()
	case err != nil:
		m.fail(err)
	default:
		p.answered = true
		if m.read() {
			return len(m.hashes)
		}
	}
	return 0
}

// readAlone reads the reply to a group that had a script of its own.
func (p *pipeline) readAlone(g *group, err error) {
	again, err := g.retry(err)
	if !again {
		g.finish(err)
	}
	p.answered, p.unknownScript = p.answered || err == nil, p.unknownScript || g.wasUnknown
}

// finish hands out the replies. Before that it records how long the calls waited, so that Stats has
// every call that has ended. It reads the clock once for all calls, which takes 1 % more
// instructions with 256 callers of one key.
func (p *pipeline) finish(s *shard) {
	if len(p.calls) == 0 { // all have ended before it left
		return
	}
	now, hash := time.Since(s.start), p.calls[0].hash
	for i, c := range p.calls {
		g := &p.groups[c.group]
		c.reply = g.answer
		switch {
		case !c.claim(g.err):
			p.calls[i] = nil
		case g.err != errBreakerOpen && !s.mustFollowSlot(g.err):
			p.times.Observe(now - c.queuedAt)
		}
	}
	p.times.AddTo(&s.times, hash)
	for _, c := range p.calls {
		if c != nil {
			c.done <- struct{}{}
		}
	}
	clear(p.calls)
}
