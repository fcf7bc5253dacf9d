package rivals

import (
	"fmt"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
)

// Record opens a rival behind a proxy and returns the scripts that the rival sends for calls. It
// first makes the calls in before, whose scripts it leaves out, because the first calls of a
// limiter may load its scripts and test the server.
func (r Redis) Record(p Place, l Limit, before, calls func(harness.AllowFunc) error) ([][]string, error) {
	recorder, err := harness.NewRecorder(p.Addrs[0])
	if err != nil {
		return nil, err
	}
	defer recorder.Close()
	p.Addrs = []string{recorder.Addr()}
	limiter, err := r.Open(p, l)
	if err != nil {
		return nil, err
	}
	defer limiter.Close()
	if err := before(limiter.Allow); err != nil {
		return nil, err
	}
	scripts, err := recorder.Record(func() error { return calls(limiter.Allow) })
	if err == nil && len(scripts) == 0 {
		err = fmt.Errorf("%s sent no script", r.Name)
	}
	return scripts, err
}
