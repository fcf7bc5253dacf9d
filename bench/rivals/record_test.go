package rivals

import (
	"bytes"
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

// A limiter also reads in the background, for no call in particular.
func TestNoScriptOfTheBackgroundIsRecorded(t *testing.T) {
	const call, reading = "*4\r\n$7\r\nevalsha\r\n$1\r\na\r\n$1\r\n1\r\n$5\r\np:{s}\r\n", "*4\r\n$7\r\nevalsha\r\n$1\r\nb\r\n$1\r\n1\r\n$14\r\np:{%marks}:mh1\r\n"
	r := recorder{streams: []*bytes.Buffer{bytes.NewBufferString(call + reading)}}
	if scripts := r.scripts(); len(scripts) != 1 || scripts[0][1] != "a" {
		t.Errorf("recorded are %q", scripts)
	}
}
