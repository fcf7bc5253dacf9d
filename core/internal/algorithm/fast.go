package algorithm

import (
	"errors"
	"strconv"
)

// The fast scripts decide over one counter that is alone on its calls, at half the cost of decide.lua: for each algorithm that
// has one, NAME_fast.lua. What is uncommon they leave to decide_equal.lua.
var fasts = [kinds]*Script{
	SlidingWindow: plain("sliding_window_fast.lua"), FixedWindow: plain("fixed_window_fast.lua"), TokenBucket: plain("token_bucket_fast.lua"),
}

// FastScript is the fast script of a limit; nil: it has none.
func (l *Limit) FastScript() *Script { return fasts[l.Kind] }

// FastArg is the argument of the fast script for so many calls of a cost. A call alone, of cost 1, finds it made.
func (l *Limit) FastArg(cost, calls int64) any {
	if cost == 1 && calls == 1 {
		return l.fast
	}
	return l.fastArg(cost, calls)
}

func (l *Limit) fastArg(cost, calls int64) string {
	if l.Kind == TokenBucket {
		return packed(l.Permit, l.Refill, l.Tick, l.Max*l.Permit, cost*l.Permit, calls*cost*l.Permit)
	}
	return packed(l.Max, l.Window, cost, calls*cost)
}

// packed is integers as struct.pack('<I7') packs them.
func packed(ints ...int64) string {
	packed := make([]byte, 0, 7*6)
	for _, n := range ints {
		packed = append(packed, byte(n), byte(n>>8), byte(n>>16), byte(n>>24), byte(n>>32), byte(n>>40), byte(n>>48))
	}
	return string(packed)
}

// littleEndian reads an unsigned integer of up to seven bytes.
func littleEndian(text string) (n int64) {
	for i := len(text) - 1; i >= 0; i-- {
		n = n<<8 | int64(text[i])
	}
	return n
}

// Uncommon is what a fast script replies to what decide_equal.lua is to decide.
const Uncommon = "-1"

// errReply says that a script replied what none of ours does.
var errReply = errors.New("not a reply of this script")

// Found is what a script that decides over calls made together found: the time, and a counter's state before any of the calls.
type Found struct {
	Now   int64 // microseconds since the epoch; of a refusal by a bucket 0, for there it means nothing
	State State
	all   bool // all calls passed

	more  More // room for the state's
	older older
}

// ReadFast reads what a fast script replied to so many calls of a cost. An integer comes as its digits: those are fewer than the
// bytes of any other reply.
func (l *Limit) ReadFast(reply string, cost, calls int64, f *Found) error {
	f.all = l.Kind == TokenBucket && len(reply) >= 43 && len(reply)%14 == 43%14 || l.Kind == SlidingWindow && len(reply) == 13
	switch {
	case l.Kind == TokenBucket && f.all:
		f.Now = littleEndian(reply[:7])
		f.State = State{
			At: f.Now, Used: littleEndian(reply[7:14]) - calls*cost*l.Permit, More: l.rate, Charged: littleEndian(reply[28:35]) - calls*cost,
		}
		if f.State.Used < 0 || f.State.Used+calls*cost*l.Permit > l.Max*l.Permit || f.State.Charged < 0 {
			return errReply
		}
	case l.Kind == TokenBucket && len(reply) == 21:
		f.Now = littleEndian(reply[:7])
		f.State = State{At: f.Now / l.Tick, Used: littleEndian(reply[7:14]), More: l.rate, Charged: littleEndian(reply[14:])}
	case l.Kind == TokenBucket: // the units used, of ticks of 1: then now means nothing
		used, err := strconv.ParseInt(reply, 10, 64)
		if err != nil || used < 0 {
			return errReply
		}
		f.Now, f.State = 0, State{Used: used, More: l.rate}
	case f.all: // whether they were used in this sub-window or before tells nothing here
		f.Now = littleEndian(reply[:7])
		f.State = State{At: subWindow(f.Now, l.Window), Used: littleEndian(reply[7:])}
		if f.State.Used+calls*cost > l.Max {
			return errReply
		}
	case l.Kind == SlidingWindow && len(reply) >= 7, len(reply) == 20:
		f.Now = littleEndian(reply[:7])
		return l.ReadState(reply[7:], f)
	default:
		return errReply
	}
	return f.sane(l)
}

// ReadState reads a state as it stands in Redis, of the algorithms whose state is a string; "" is that of a counter which nobody used.
func (l *Limit) ReadState(text string, f *Found) error {
	f.State, f.all = State{}, false
	switch {
	case text == "":
	case l.Kind == TokenBucket:
		if err := f.readBucket(text); err != nil {
			return err
		}
	case l.Kind == SlidingWindow && len(text)%6 == 1 && len(text) >= 19:
		f.older = older{}
		f.more = More{Own: littleEndian(text[13:19]), Older: &f.older}
		f.State = State{At: littleEndian(text[:7]), Used: littleEndian(text[7:13]), More: &f.more}
		held := f.more.Own
		for at := 19; at < len(text); at += 6 {
			slot, permits := int64(text[at]), littleEndian(text[at+1:at+6])
			if age := (f.State.At - slot) & 63; age == 0 || age > subWindows {
				return errReply
			}
			f.older.set(slot, permits)
			held += permits
		}
		if held != f.State.Used {
			return errReply
		}
	case (l.Kind == FixedWindow || l.Kind == CalendarWindow) && len(text) == 13:
		f.State = State{At: littleEndian(text[:7]), Used: littleEndian(text[7:])}
	default:
		return errReply
	}
	return f.sane(l)
}

// readBucket reads the state of a bucket: see token_bucket_state.lua.
func (f *Found) readBucket(text string) error {
	if len(text) < 43 {
		return errReply
	}
	f.State = State{At: littleEndian(text[:7]), Charged: littleEndian(text[28:35]), Born: littleEndian(text[35:42]), More: &f.more}
	p := part{used: littleEndian(text[7:14]), permit: littleEndian(text[14:21]), refill: littleEndian(text[21:28])}
	if text = text[42:]; text == "\x00" { // one rate, no gaps
		f.State.Used, f.more = p.used, More{Own: p.permit, Until: p.refill}
		if !p.sane() {
			return errReply
		}
		return nil
	}
	parts := make([]part, 0, maxParts)
	for len(parts) < maxParts && p.sane() {
		count := int(text[0])
		if text = text[1:]; len(text) < 14*count {
			return errReply
		}
		for ; count > 0; count-- {
			p.gaps, text = append(p.gaps, gap{littleEndian(text[:7]), littleEndian(text[7:14])}), text[14:]
		}
		if parts = append(parts, p); text == "" {
			f.more = More{Parts: &parts}
			return nil
		}
		if len(text) < 22 {
			return errReply
		}
		p = part{used: littleEndian(text[:7]), permit: littleEndian(text[7:14]), refill: littleEndian(text[14:21])}
		text = text[21:]
	}
	return errReply
}

func (p *part) sane() bool {
	return p.used <= maxUnits && p.permit > 0 && p.permit <= maxUnits && p.refill > 0 && p.refill <= maxUnits
}

// sane is an error where a number is none that a script writes.
func (f *Found) sane(l *Limit) error {
	const never = 1 << 53
	bucket := l.Kind == TokenBucket && (f.State.Used > maxUnits || f.State.Charged > maxUnits || f.State.Born >= never)
	if f.Now >= never || f.State.At >= never || bucket {
		return errReply
	}
	return nil
}

// AsOne says whether equal calls on this counter can be decided together: those of them that charge it, and leave nothing of
// their own in its state.
func (c *Counter) AsOne() bool {
	switch c.Limit.Kind {
	case SlidingWindow, FixedWindow, CalendarWindow, TokenBucket:
		return c.Cost > 0 && !c.Dry
	default:
		return false
	}
}

// Fit is how many of so many equal calls fit, one after the other.
func (f *Found) Fit(c *Counter, calls int64) int64 {
	if f.all {
		return calls
	}
	var v Verdict
	c.Limit.Look(&f.State, f.Now, 0, false, &v)
	return min(calls, v.Remaining/c.Cost)
}

// Nth is what the call is answered that stands behind so many equal ones, of which so many passed. It uses up what was found.
func (f *Found) Nth(c *Counter, behind, passed int64, v *Verdict) {
	if behind < passed { // charged at once, the counter is as after one by one
		c.Limit.Decide(&f.State, f.Now, (behind+1)*c.Cost, "", v)
		return
	}
	if passed > 0 {
		c.Limit.Decide(&f.State, f.Now, passed*c.Cost, "", v)
	}
	c.Limit.Look(&f.State, f.Now, c.Cost, true, v)
}
