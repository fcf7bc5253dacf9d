package rivals

import (
	"context"
	"testing"

	"github.com/accesslimit/accesslimit/bench/harness"
)

// The scripts of the calls are recorded, without those before them.
func TestRecord(t *testing.T) {
	server, err := harness.StartServer()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	call := func(subjects ...string) func(harness.AllowFunc) error {
		return func(allow harness.AllowFunc) error {
			for _, subject := range subjects {
				if _, err := allow(context.Background(), subject); err != nil {
					return err
				}
			}
			return nil
		}
	}
	scripts, err := Find(Bare).Record(Place{Addr: server.Addr}, ten, call("before"), call("first", "second"))
	if err != nil || len(scripts) != 2 || scripts[0][3] != "first" || scripts[1][3] != "second" {
		t.Errorf("%q, %v", scripts, err)
	}
}
