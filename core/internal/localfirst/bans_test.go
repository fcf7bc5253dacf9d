package localfirst_test

import (
	"context"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/localfirst/localtest"
)

// bannedLonger is a store whose clock is an hour behind, and where everybody is banned for longer
// than is asked for.
type bannedLonger struct{ *localtest.Shared }

func (bannedLonger) Ban(_ context.Context, _ []byte, span int64) (ends int64, changed bool, err error) {
	return time.Now().Add(-time.Hour).UnixMicro() + span + localtest.Second, false, nil
}

// An operator's ban that changes nothing, because a longer one is in force, is known to this process
// even if it has not seen the store's clock.
func TestALongerBanInForceIsKnown(t *testing.T) {
	p, key := localtest.NewProcess(t, bannedLonger{localtest.NewShared(t, 10)}), []byte("test:{s}:n:ban")
	if _, _, err := p.Ban(context.Background(), key, localtest.Minute); err != nil {
		t.Fatal(err)
	}
	if p.Bans.Lasts(key) == 0 {
		t.Error("it is not known")
	}
}
