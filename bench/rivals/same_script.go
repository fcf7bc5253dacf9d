package rivals

import (
	"context"
	"strings"

	"github.com/accesslimit/accesslimit/bench/harness"
)

// sameScript calls the script of our TokenBucket through go-redis, with no limiter around it.
var sameScript = Redis{Name: SameScript, Open: func(p Place, l Limit) (Opened, error) {
	call, err := RecordOne(p, l, recordedSubject)
	if err != nil {
		return Opened{}, err
	}
	client := p.client()
	args := make([]any, len(call)-4)
	for i := range args {
		args[i] = call[4+i]
	}
	before, after, _ := strings.Cut(call[3], recordedSubject)
	allow := func(ctx context.Context, subject string) (allowed bool, err error) {
		reply, err := client.EvalSha(ctx, call[1], []string{before + subject + after}, args...).Slice()
		return err == nil && len(reply) == 3 && reply[1] == int64(1), err // the time, how many calls passed, the state
	}
	return Opened{Allow: allow, Close: func() { _ = client.Close() }}, nil
}}

var recordedSubject = harness.NewKeys("rec", 1).At(0)

// RecordOne returns the script that our TokenBucket sends for a call on a subject.
func RecordOne(p Place, l Limit, subject string) ([]string, error) {
	call := func(subject string) func(harness.AllowFunc) error {
		return func(allow harness.AllowFunc) error {
			_, err := allow(background, subject)
			return err
		}
	}
	scripts, err := onRedis(OneKey, oneKeyPerScript).Record(p, l, call("not "+subject), call(subject))
	if err != nil {
		return nil, err
	}
	return scripts[len(scripts)-1], nil
}
