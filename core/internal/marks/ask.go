package marks

import (
	"context"
	_ "embed"
	"net/netip"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

var (
	//go:embed ask.lua
	askText   string
	askScript = algorithm.NewScript(askText)
)

// shortestFour and shortestSix are the shortest networks that can be marked.
const shortestFour, shortestSix = 8, 16

// Ask reads the marks of a subject, and of the networks of an address if it is valid, unless all marks
// were read, or a right is missing.
func (r *Rule) Ask(ctx context.Context, subject []byte, addr netip.Addr) error {
	if r.set.ready.Load() {
		return nil
	}
	r.set.follow.wake() // also if a right is missing, because it may have been granted since
	if r.set.feature.IsOff() {
		return nil
	}
	names := []string{nameOf(subject)}
	if addr = addr.Unmap().WithZone(""); addr.IsValid() {
		shortest := shortestSix
		if addr.Is4() {
			shortest = shortestFour
		}
		for length := shortest; length <= addr.BitLen(); length++ {
			network, _ := addr.Prefix(length)
			names = append(names, string(appendNetwork(nil, network)))
		}
	}
	return r.ask(ctx, names)
}

// Of returns the marks of a subject or a network that hold now, as Redis has them, for an operator. If
// the store does not answer, they are those that this process knows.
func (r *Rule) Of(ctx context.Context, subject string) (f Found, err error) {
	name := nameByOperator(subject)
	if r.set.Redis != nil {
		err = r.ask(ctx, []string{name})
	}
	if r.unlisted {
		r = r.set.listed(r.name)
	}
	return r.subjects.find([]byte(name)).found(r.set.Now()), err
}

// ask reads the marks of names into the table.
func (r *Rule) ask(ctx context.Context, names []string) error {
	s := r.set
	fields := []any{2 * len(names)}
	for _, name := range names {
		fields = append(fields, fieldOf(true, r.name, name), fieldOf(false, r.name, name))
	}
	return s.redis.Operate(ctx, func(ctx context.Context) error {
		reply, err := s.redis.Script(ctx, askScript, s.keys[:1], fields...)
		if err != nil {
			return err
		}
		now, ok := int64(0), len(reply) == len(fields)
		if ok {
			now, ok = reply[0].(int64)
		}
		if !ok {
			return unexpected(reply)
		}
		for _, value := range reply[1:] {
			stored, ok := value.(string)
			if !ok {
				continue
			}
			if m, err := s.read(stored, now); err != nil {
				s.Log.MarkUnreadable(err)
			} else {
				s.put(m)
			}
		}
		return nil
	})
}
