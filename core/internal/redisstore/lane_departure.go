package redisstore

import "sync/atomic"

// departure is the moment at which a lane's pipeline is written to a connection. A call whose time
// ends before may be told that it was not sent. The pipeline is then recalled: commands that decide
// nothing are written in its place, and the calls that still wait go in another round trip.
//
// A pipeline is recalled at most once, so that calls which keep ending do not hold up the others. The
// pipeline and the timer cannot miss each other: each sets its own flag before it reads the other's.
type departure struct {
	unsent   atomic.Bool // the last pipeline got no connection, or has none yet
	ended    atomic.Bool // a call of it has been told so
	recalled bool        // only the goroutine that serves the lane uses it
}

// reset prepares for a pipeline that has no connection yet. The shard must be locked, as it is for the
// timer.
func (d *departure) reset() {
	d.recalled = false
	d.ended.Store(false)
	d.unsent.Store(true)
}

// leave is called as each command is written, in the pipeline's order.
func (d *departure) leave() {
	if d.unsent.Swap(false) {
		d.recalled = d.ended.Load()
	}
}

// missed reports whether a call that ends now was not sent, and makes sure that it will not be.
func (d *departure) missed() bool {
	d.ended.Store(true)
	return d.unsent.Load()
}

// takeRecall reports whether the commands written last decided nothing.
func (d *departure) takeRecall() bool {
	recalled := d.recalled
	d.recalled = false
	return recalled
}

// recallScript replaces a command of a recalled pipeline, or one whose caller has left. Its reply is
// an error, because the commands have different types of replies.
const recallScript = "return redis.error_reply('RECALLED')"
