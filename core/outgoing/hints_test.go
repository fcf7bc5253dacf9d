package outgoing

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// at is the time by the server's clock in the tests of hints.
var at = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func responseWith(status int, header ...string) *http.Response {
	r := &http.Response{StatusCode: status, Header: http.Header{"Date": {at.Format(http.TimeFormat)}}}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// hint is an answer, and what it says.
type hint struct {
	status  int
	header  []string
	refused bool
	wait    time.Duration
}

func hints() map[string]hint {
	unix := strconv.FormatInt(at.Add(30*time.Second).Unix(), 10)
	const second = time.Second
	return map[string]hint{
		"nothing":                          {200, nil, false, 0},
		"no hint on a 429":                 {429, nil, true, 0},
		"seconds":                          {429, []string{"Retry-After", "120"}, true, 120 * second},
		"a date":                           {429, []string{"Retry-After", at.Add(30 * second).Format(http.TimeFormat)}, true, 30 * second},
		"a date beside none of its own":    {429, []string{"Retry-After", at.Add(time.Hour + 40*second).Format(http.TimeFormat)}, true, 40 * second},
		"a date that has passed":           {429, []string{"Retry-After", at.Add(-30 * second).Format(http.TimeFormat)}, true, 0},
		"milliseconds":                     {429, []string{"Retry-After-Ms", "1500"}, true, 1500 * time.Millisecond},
		"many milliseconds":                {429, []string{"Retry-After-Ms", "43200000"}, true, 12 * time.Hour},
		"two that disagree":                {429, []string{"Retry-After", "2", "Retry-After-Ms", "7000"}, true, 7 * second},
		"two of one name":                  {429, []string{"Retry-After", "2", "Retry-After", "9"}, true, 9 * second},
		"503 with a wait":                  {503, []string{"Retry-After", "5"}, true, 5 * second},
		"503 without":                      {503, nil, false, 0},
		"a delay with status 200":          {200, []string{"Retry-After", "5"}, false, 5 * second},
		"when to ask for a result":         {202, []string{"Retry-After", "15"}, false, 0},
		"when to follow a redirect":        {303, []string{"Retry-After", "15"}, false, 0},
		"GitHub's second limit":            {403, []string{"Retry-After", "60", "X-RateLimit-Remaining", "4000", "X-RateLimit-Reset", unix}, true, 60 * second},
		"GitHub's first limit":             {403, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", unix}, true, 30 * second},
		"a 403 with calls left":            {403, []string{"X-RateLimit-Remaining", "7", "X-RateLimit-Reset", unix}, false, 0},
		"remaining 0 before the 429 comes": {200, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", unix}, false, 30 * second},
		"some remain":                      {200, []string{"X-RateLimit-Remaining", "1", "X-RateLimit-Reset", unix}, false, 0},
		"a reset in seconds":               {200, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "20"}, false, 20 * second},
		"a reset in milliseconds":          {200, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", unix + "250"}, false, 30*second + 250*time.Millisecond},
		"a reset by ISO 8601":              {429, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "2026-11-23T13:01+01:00"}, true, 60 * second},
		"a reset on a 429 alone":           {429, []string{"X-RateLimit-Reset", "20"}, true, 20 * second},
		"a reset with calls left on a 429": {429, []string{"X-RateLimit-Remaining", "5", "X-RateLimit-Reset", "20"}, true, 0},
		"the names of draft 6":             {200, []string{"RateLimit-Remaining", "0", "RateLimit-Reset", "20"}, false, 20 * second},
		"draft 7":                          {200, []string{"RateLimit", "limit=100, remaining=0, reset=50"}, false, 50 * second},
		"draft 7, some remain":             {200, []string{"RateLimit", "limit=100, remaining=2, reset=50"}, false, 0},
		"draft 10":                         {200, []string{"RateLimit", `"burst";r=9;t=60, "daily";r=0;t=30`}, false, 30 * second},
		"draft 10 without a reset":         {429, []string{"RateLimit", `"burst";r=0`}, true, 0},
		"a vendor's names and a duration":  {200, []string{"X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "6m0s"}, false, 6 * time.Minute},
		"far too long":                     {429, []string{"Retry-After", "999999999999999999999"}, true, longest},
		"10^30 seconds":                    {429, []string{"Retry-After", "1" + strings.Repeat("0", 30)}, true, longest},
		"10^400 milliseconds":              {429, []string{"Retry-After-Ms", "1" + strings.Repeat("0", 400)}, true, longest},
		"five years":                       {429, []string{"Retry-After", "157680000"}, true, longest},
		"many decimal places":              {429, []string{"Retry-After", "1.5" + strings.Repeat("0", 40)}, true, 1500 * time.Millisecond},
		"negative":                         {429, []string{"Retry-After", "-5", "Retry-After-Ms", "-5", "X-RateLimit-Reset", "-5s"}, true, 0},
		"a structured field without end":   {429, []string{"RateLimit", strings.Repeat(`"a";r=0;t=30,`, 10_000) + `"a";r=0;t=30`}, true, 0},
		"very many lines":                  {429, slices.Repeat([]string{"Retry-After", "5"}, 350), true, 0},
		"a time in seconds in Retry-After": {429, []string{"Retry-After", unix}, true, 30 * second},
		"not a wait":                       {429, []string{"Retry-After", "soon", "X-RateLimit-Reset", "-5", "RateLimit", "=;"}, true, 0},
		"a number in another notation":     {429, []string{"Retry-After", "0x10"}, true, 0},
	}
}

func TestHints(t *testing.T) {
	for name, test := range hints() {
		t.Run(name, func(t *testing.T) {
			vendor := []Quota{{"x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"}}
			now := at.Add(time.Hour) // this process's clock is wrong, or the server's
			r := responseWith(test.status, test.header...)
			if name == "a date beside none of its own" { // this process's clock counts
				r.Header.Del("Date")
			}
			if got := answerOf(r, vendor, now); got != (Answer{test.refused, test.wait}) {
				t.Errorf("%v: %+v, want %v, %v", test.header, got, test.refused, test.wait)
			}
		})
	}
}

// Whatever a server sends, the wait is bounded and not negative, and calls are refused by their status
// alone.
func FuzzHints(f *testing.F) {
	for _, seed := range []string{"120", "1.5", "Mon, 23 Nov 2026 12:00:30 GMT", "2026-11-23T13:01Z", "6m0s", `"a";r=0;t=30`, "limit=1, remaining=0, reset=5", "-1", "NaN"} {
		f.Add(429, seed, seed, seed)
	}
	f.Fuzz(func(t *testing.T, status int, retryAfter, remaining, reset string) {
		r := responseWith(status, "Retry-After", retryAfter, "Retry-After-Ms", retryAfter, "X-RateLimit-Remaining", remaining, "X-RateLimit-Reset", reset, "RateLimit", reset)
		a := answerOf(r, nil, at)
		if a.Wait < 0 || a.Wait > longest {
			t.Errorf("the wait is %v", a.Wait)
		}
		if may := status == 429 || status == 403 || status == 503; a.Refused && !may || status == 429 && !a.Refused {
			t.Errorf("%d: refused is %v", status, a.Refused)
		}
	})
}
