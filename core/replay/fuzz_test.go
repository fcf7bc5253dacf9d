package replay_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/replay"
)

// Whatever a log contains, its calls are all reported, and the report has nothing that a terminal obeys.
func FuzzRun(f *testing.F) {
	f.Add(accessLog)
	f.Add("192.0.2.1 - \x1b[2J [22/Nov/2026:10:00:05 +0000] \"GET /a%00\x07?x=\x9b HTTP/1.1\" 200 4096 \"-\" \"\\x1b[31m\"\n")
	f.Add("192.0.2.1 - a\x9b [22/Nov/2026:10:00:05 +0000] \"GET /a HTTP/1.1\" 200 4096\n192.0.2.1 - a\x9b [22/Nov/2026:10:00:05 +0000] \"GET /a HTTP/1.1\" 200 4096\n")
	f.Add(`{"time":"2026-11-22T10:00:02Z","remote_addr":"::1%eth0","request":"GET /../%2e%2e/a HTTP/1.1","remote_user":"\u202ea\u001b"}` + "\n")
	options := replay.Options{Suggest: 90, AllowBadLines: true, Fields: map[string]string{"value:x": "http_user_agent"}, Guards: []replay.Guard{{Rules: []core.Rule{
		{Name: "address", Limit: core.PerMinute(1), Ban: core.Ban{After: 1, For: time.Minute}},
		{Name: "user", Limit: core.InFlight(1), NeedLogin: true, Paths: []string{"/a/**"}},
		{Name: "value", Limit: core.PerSecond(1).Bucket(2), Key: core.ByValue("x"), Mode: core.Soft},
		{Name: "query", Limit: core.PerHour(1).Log(), Key: core.Join(core.ByQuery("x"), core.ByHost, core.ByUser), Mode: core.DryRun},
	}}}}
	f.Fuzz(func(t *testing.T, text string) {
		report, err := replay.Run(t.Context(), options, replay.Log{Name: "log", Reader: strings.NewReader(text)})
		if err != nil {
			if report != nil || errors.Is(err, replay.ErrBadLines) {
				t.Fatal(report, err)
			}
			return
		}
		sum := 0
		for i := range report.Chart.Passed {
			sum += report.Chart.Passed[i] + report.Chart.Refused[i]
		}
		if sum != report.Calls || report.Calls+report.BadLines > report.Lines {
			t.Fatalf("%+v", report)
		}
		shown := report.String()
		if i := strings.IndexFunc(shown, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 || !utf8.ValidString(shown) {
			t.Fatalf("%q", shown)
		}
	})
}
