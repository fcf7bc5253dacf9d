package algorithm

func (*slidingWindow) fastArg(l *Limit, cost, calls int64) string {
	return fastArgs(calls*cost, cost, l.Max, l.Window)
}

// readFast reads whether all calls were charged, and the time. Then it reads the permits used
// before and the birth if all were charged, and otherwise the state that was found.
func (*slidingWindow) readFast(l *Limit, reply string, cost, calls int64, f *Found) error {
	if len(reply) < 8 {
		return errReply
	}
	f.Now = littleEndian(reply[1:8])
	if reply[0] == 0 {
		return l.ReadState(reply[8:], f)
	} else if reply[0] != 1 {
		return errReply
	}
	// For calls that are charged, it does not matter in which sub-windows they were used.
	if len(reply) != 21 {
		return errReply
	}
	f.all, f.State = true, State{At: subWindow(f.Now, l.Window), Used: littleEndian(reply[8:14]), Born: littleEndian(reply[14:])}
	if f.State.Used+calls*cost > l.Max {
		return errReply
	}
	return nil
}

func (*slidingWindow) readState(_ *Limit, text string, f *Found) error {
	if len(text)%6 != 2 || len(text) < 26 {
		return errReply
	}
	w := &f.window
	*w = subWindowed{latest: littleEndian(text[13:19])}
	f.more = More{window: w}
	f.State = State{At: littleEndian(text[:7]), Used: littleEndian(text[7:13]), Born: littleEndian(text[19:26]), More: &f.more}
	held := w.latest
	for at := 26; at < len(text); at += 6 {
		slot, permits := int64(text[at]), littleEndian(text[at+1:at+6])
		if age := (f.State.At - slot) & 63; age == 0 || age > subWindows {
			return errReply
		}
		w.older.set(slot, permits)
		held += permits
	}
	if held != f.State.Used {
		return errReply
	}
	return nil
}
