package core

import "sync/atomic"

// manyWithoutLogin is the number of calls without a login at which the log warns.
const manyWithoutLogin = 300

// logins records whether the calls that needed a login had one.
type logins struct {
	seen    atomic.Bool // a call had one
	missing atomic.Int64
}

// note notes whether such a call had a login. If none has had one, it returns once how many they were.
func (l *logins) note(loggedIn bool) (missing int) {
	switch {
	case l.seen.Load():
	case loggedIn:
		l.seen.Store(true)
	case l.missing.Add(1) == manyWithoutLogin:
		return manyWithoutLogin
	}
	return 0
}
