package replay_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/replay"
)

const accessLog = `
203.0.113.7 - - [22/Nov/2026:10:00:01 +0000] "POST /login HTTP/1.1" 401 23 "-" "curl/8.5"
203.0.113.7 - - [22/Nov/2026:10:00:02 +0000] "POST /login HTTP/1.1" 401 23 "-" "curl/8.5"
203.0.113.7 - - [22/Nov/2026:10:00:03 +0000] "POST /login HTTP/1.1" 401 23 "-" "curl/8.5"
192.0.2.1 - - [22/Nov/2026:10:00:04 +0000] "POST /login HTTP/1.1" 200 512 "-" "Mozilla/5.0"
192.0.2.1 - - [22/Nov/2026:10:00:05 +0000] "GET / HTTP/1.1" 200 4096 "-" "Mozilla/5.0"
`

func ExampleRun() {
	login := core.Rule{Name: "login", Limit: core.Per(2, 15*time.Minute), Paths: []string{"/login"}}
	report, err := replay.Run(context.Background(), replay.Options{
		Guards: []replay.Guard{{Rules: []core.Rule{login}}},
	}, replay.Log{Name: "access.log", Reader: strings.NewReader(accessLog)})
	if err != nil {
		log.Fatal(err)
	}
	rule := report.Rules[0]
	fmt.Printf("%d of %d calls refused; %d of %d subjects were hit: %s\n", rule.Refused, rule.Calls, rule.Hit, rule.Subjects, rule.Top[0].Subject)
	// Output: 1 of 4 calls refused; 1 of 2 subjects were hit: ip:203.0.113.7
}
