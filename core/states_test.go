package core_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// The states are as REDIS.md says, after a new subject has taken two permits.
func TestStatesAreAsDocumented(t *testing.T) {
	page, err := os.ReadFile("REDIS.md")
	if err != nil {
		t.Fatal(err)
	}
	for tag, test := range map[string]struct {
		limit core.Limit
		want  []string // "now" is a time during the test, and "" any number
	}{
		"sw1": {core.PerHour(5), []string{"", "2", "2"}},
		"fw1": {core.PerHour(5).Fixed(), []string{"now", "2"}},
		"cw1": {core.PerCalendarDay(5, "Europe/Berlin"), []string{"", "2"}},
		// 5 an hour: ticks of a millisecond, and the greatest common divisor of 5 and 3600000 is 5.
		"tb3": {core.PerHour(5).Bucket(5), []string{"", "1440000", "720000", "1", "5", "", "now"}},
	} {
		t.Run(tag, func(t *testing.T) {
			client := redistest.Start(t).Client(t)
			counter := newLimiter(t, core.Options{Redis: client, Timeout: patient}).MustCounter("name", test.limit)
			now := time.Now().UnixMicro()
			if _, err := counter.AllowN(background, "user:alice", 2); err != nil {
				t.Fatal(err)
			}
			keys := client.Keys(background, "accesslimit:{user:alice}:name:"+tag+":*").Val()
			_, row, documented := strings.Cut(string(page), "\n| "+tag+" | string | ")
			if len(keys) != 1 || !documented {
				t.Fatalf("the keys are %q; the page has the state: %v", keys, documented)
			}
			row, _, _ = strings.Cut(row, "\n")
			row, _, _ = strings.Cut(row, ";")
			format := "<" + strings.Join(regexp.MustCompile("I[0-9]").FindAllString(row, -1), "")
			read := "return {struct.unpack(ARGV[1], redis.call('GET', KEYS[1]))}"
			state, err := client.Eval(background, read, keys, format).Int64Slice()
			if err != nil {
				t.Fatal(err)
			}
			if end := state[len(state)-1]; end-1 != client.StrLen(background, keys[0]).Val() {
				t.Errorf("the state ends before byte %d", end)
			}
			for i, want := range test.want {
				isNow := now <= state[i] && state[i] <= time.Now().UnixMicro()
				if want == "now" && !isNow || want != "now" && want != "" && fmt.Sprint(state[i]) != want {
					t.Errorf("the state is %v, want %v", state, test.want)
				}
			}
		})
	}
}
