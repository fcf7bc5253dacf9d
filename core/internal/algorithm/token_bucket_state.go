package algorithm

import "strconv"

// The state of a bucket as it is in Redis: see token_bucket_state.lua.

func (*tokenBucket) fastArg(l *Limit, cost, calls int64) string {
	return fastArgs(calls*cost*l.Permit, cost*l.Permit, l.Permit, l.Refill, l.Tick, l.Max*l.Permit)
}

// The lengths of the pieces of a state: a bucket of one rate without gaps, what follows before the
// gaps of a part, a gap, and the head of a further part.
const (
	simpleState = 44
	gapsHead    = 16
	gapLength   = 14
	partHead    = 23
)

// readFast reads the three forms of a reply, which differ in length. A single packed form would
// cost Redis 4 % of its instructions for an allowed call, and 6 % for a refused one.
func (*tokenBucket) readFast(l *Limit, reply string, cost, calls int64, f *Found) error {
	f.all = false
	switch n := len(reply); {
	case n == simpleState || n >= simpleState+gapsHead && (n-simpleState-gapsHead)%gapLength == 0:
		// All are charged: the state as it was written. Ticks are of 1.
		all := calls * cost
		f.all, f.Now = true, littleEndian(reply[:7])
		f.State = State{At: f.Now, Used: littleEndian(reply[7:14]) - all*l.Permit, More: l.shared, Charged: littleEndian(reply[30:37]) - all}
		if f.State.Used < 0 || f.State.Used+all*l.Permit > l.Max*l.Permit || f.State.Charged < 0 {
			return errReply
		}
	case n == 21: // now, the units used before, the position before
		f.Now = littleEndian(reply[:7])
		f.State = State{At: f.Now / l.Tick, Used: littleEndian(reply[7:14]), More: l.shared, Charged: littleEndian(reply[14:])}
	default: // none fits: the units used, as digits. Ticks are of 1, so the answer does not depend on the time
		used, err := strconv.ParseInt(reply, 10, 64)
		if err != nil || used < 0 {
			return errReply
		}
		f.Now, f.State = 0, State{Used: used, More: l.shared}
	}
	return nil
}

// readState reads the state of a bucket: see token_bucket_state.lua.
func (*tokenBucket) readState(_ *Limit, text string, f *Found) error {
	if len(text) < simpleState {
		return errReply
	}
	f.more = More{bucket: &f.bucket}
	f.State = State{At: littleEndian(text[:7]), Charged: littleEndian(text[30:37]), Born: littleEndian(text[37:44]), More: &f.more}
	p := readPart(text[7:30])
	if text = text[simpleState:]; text == "" {
		f.State.Used, f.bucket = p.used, bucketParts{permit: p.permit, refill: p.refill, burst: p.burst}
		if !p.sane() {
			return errReply
		}
		return nil
	}
	parts, ok := readParts(p, text)
	f.bucket = bucketParts{parts: parts}
	if !ok {
		return errReply
	}
	return nil
}

// readPart reads the fields of a part before own.
func readPart(text string) part {
	return part{
		used: littleEndian(text[:7]), permit: littleEndian(text[7:13]), refill: littleEndian(text[13:18]), burst: littleEndian(text[18:23]),
	}
}

// readParts reads the field own and the gaps of the first part, and then the further parts.
func readParts(p part, text string) (parts []part, ok bool) {
	parts = make([]part, 0, maxParts)
	for len(parts) < maxParts && p.sane() && len(text) >= gapsHead {
		p.own, p.kept = littleEndian(text[:7]), littleEndian(text[7:14])
		count := int(littleEndian(text[14:16]))
		if text = text[gapsHead:]; len(text) < gapLength*count {
			return nil, false
		}
		for ; count > 0; count-- {
			p.list, text = append(p.list, gap{littleEndian(text[:7]), littleEndian(text[7:14])}), text[gapLength:]
		}
		if parts = append(parts, p); text == "" {
			return parts, true
		}
		if len(text) < partHead {
			return nil, false
		}
		p, text = readPart(text[:partHead]), text[partHead:]
	}
	return nil, false
}

func (p *part) sane() bool { return p.used <= maxUnits && p.permit > 0 && p.refill > 0 }
