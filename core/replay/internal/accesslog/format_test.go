package accesslog

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// read returns the calls of a log, as text, and what was counted.
func read(t *testing.T, text, format string, fields map[string]string) (calls []string, counts Counts, err error) {
	t.Helper()
	f, err := ParseFormat(format, fields)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open("test.log", strings.NewReader(text), f, time.UTC, &counts)
	if err != nil {
		return nil, counts, err
	}
	m := Merge([]*Log{l}, true)
	for c := m.Next(); c != nil; c = m.Next() {
		calls = append(calls, show(c))
	}
	return calls, counts, m.Errs()[0]
}

// show returns what most tests compare of a call.
func show(c *Call) string {
	return fmt.Sprintf("%s %s %s host=%s user=%s from=%v status=%d size=%d took=%d", time.UnixMicro(c.Began).UTC().Format("2006-01-02T15:04:05.000000"),
		c.Method, c.URI, c.Host, c.User, c.Address, c.Status, c.Size, c.Took)
}

// Lines of each proxy, as its documentation shows them or as it writes them.
func TestFormats(t *testing.T) {
	for _, test := range []struct{ name, format, line, want string }{
		{"common", "", `127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326`,
			"2000-10-10T20:55:36.000000 GET /apache_pb.gif host= user=frank from=127.0.0.1 status=200 size=-1 took=0"},
		{"combined", "", `2001:db8::7 - - [22/Nov/2026:00:00:01 +0100] "GET /a?b=1 HTTP/2.0" 304 0 "https://example.com/" "Mozilla/5.0 (X11; \x22U\x22) [en]"`,
			"2026-11-21T23:00:01.000000 GET /a?b=1 host= user= from=2001:db8::7 status=304 size=-1 took=0"},
		{"combined and more", "", `192.0.2.1 - - [22/Nov/2026:00:00:01 +0000] "GET / HTTP/1.1" 200 5 "-" "curl/8.5" "203.0.113.9, 192.0.2.1"`,
			"2026-11-22T00:00:01.000000 GET / host= user= from=192.0.2.1 status=200 size=-1 took=0"},
		{"a name with a space", "", `192.0.2.1 - john smith [22/Nov/2026:00:00:01 +0000] "GET / HTTP/1.1" 200 5 "-" "a \" b"`,
			"2026-11-22T00:00:01.000000 GET / host= user=john smith from=192.0.2.1 status=200 size=-1 took=0"},
		{"vhost_combined", "", `example.com:443 192.0.2.1 - - [22/Nov/2026:00:00:01 +0000] "POST /x HTTP/1.1" 201 5 "-" "curl/8.5"`,
			"2026-11-22T00:00:01.000000 POST /x host=example.com:443 user= from=192.0.2.1 status=201 size=-1 took=0"},
		{"traefik_common", "", `10.0.0.9 - - [22/Nov/2026:10:00:02 +0000] "GET /whoami HTTP/1.1" 200 345 "-" "curl/8.5" 7 "whoami@docker" "http://172.17.0.3:80" 1250ms`,
			"2026-11-22T10:00:01.000000 GET /whoami host= user= from=10.0.0.9 status=200 size=-1 took=1250000"},
		{"caddy", "", `{"level":"info","ts":1795687201.5241024,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"10.0.0.1","remote_port":"41342","client_ip":"203.0.113.7","proto":"HTTP/2.0","method":"GET","host":"localhost:8443","uri":"/a%20b?x=1","headers":{"User-Agent":["curl/8.5"]}},"bytes_read":12,"user_id":"alice","duration":0.25,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}`,
			"2026-11-26T10:00:01.274102 GET /a%20b?x=1 host=localhost:8443 user=alice from=203.0.113.7 status=200 size=12 took=250000"},
		{"traefik", "", `{"ClientAddr":"10.0.0.1:53424","ClientHost":"10.0.0.1","ClientUsername":"-","DownstreamStatus":404,"Duration":1500000,"RequestContentSize":3,"RequestHost":"example.com","RequestMethod":"PUT","RequestPath":"/v1/x?y=2","StartUTC":"2026-11-22T10:00:01.123456789Z","level":"info","msg":"","time":"2026-11-22T10:00:02Z"}`,
			"2026-11-22T10:00:01.123456 PUT /v1/x?y=2 host=example.com user= from=10.0.0.1 status=404 size=3 took=1500"},
		{"envoy", "", `{"authority":"httpbin:8000","bytes_received":0,"downstream_remote_address":"[2001:db8::1]:37652","duration":4,"method":"GET","path":"/status/418","protocol":"HTTP/1.1","response_code":418,"response_flags":"-","start_time":"2026-11-22T10:00:01.409Z","upstream_host":null,"x_forwarded_for":"192.0.2.9"}`,
			"2026-11-22T10:00:01.409000 GET /status/418 host=httpbin:8000 user= from=2001:db8::1 status=418 size=0 took=4000"},
		{"envoy_text", "", `[2026-11-22T10:00:01.310Z] "POST /api/v1/locations?a HTTP/2" 204 - 154 0 226 100 "203.0.113.9, 10.0.35.28" "curl" "cc21d9b0" "locations:80" "tcp://10.0.2.1:80"`,
			"2026-11-22T10:00:01.310000 POST /api/v1/locations?a host=locations:80 user= from=10.0.35.28 status=204 size=154 took=226000"},
		{"istio_text", "", `[2026-11-22T10:00:01.456Z] "GET /orders HTTP/1.1" 503 UC via_upstream - "-" 156 91 30004 - "-" "curl" "f47ac10b" "orders.test" "10.244.3.12:80" outbound|80||orders.test 10.244.1.5:54321 10.96.45.67:80 10.244.1.9:33210 - default`,
			"2026-11-22T10:00:01.456000 GET /orders host=orders.test user= from=10.244.1.9 status=503 size=156 took=30004000"},
		{"a format string of Envoy", `[%START_TIME(%s.%3f)%] %REQ(:METHOD)% %REQ(:PATH):100% "%REQUEST_HEADER(:AUTHORITY)%" %RESPONSE_CODE% %DOWNSTREAM_REMOTE_ADDRESS%\n`, `[1795341601.250] GET /a\x22\ "a\" 200 [2001:db8::1]:443`,
			`2026-11-22T10:00:01.250000 GET /a\x22\ host=a\ user= from=2001:db8::1 status=200 size=-1 took=0`},
		{"envoy gateway", "", `{":authority":"a.test","bytes_received":494,"downstream_remote_address":"10.244.0.1:51997","duration":74,"method":"POST","response_code":200,"start_time":"2026-11-22T10:00:01.409Z","x-envoy-origin-path":"/api/query"}`,
			"2026-11-22T10:00:01.409000 POST /api/query host=a.test user= from=10.244.0.1 status=200 size=494 took=74000"},
		{"json", "", `{"time_iso8601":"2026-11-22T11:00:01+01:00","remote_addr":"192.0.2.1","request":"GET /j HTTP/1.1","status":"200","request_time":"0.100"}`,
			"2026-11-22T10:00:01.000000 GET /j host= user= from=192.0.2.1 status=200 size=-1 took=100000"},
		{"log_format", `$host [$msec] ${request_method} "$request_uri" $status $request_time $remote_addr`, `a.example [1795341601.250] GET "/p" 200 0.050 192.0.2.1`,
			"2026-11-22T10:00:01.200000 GET /p host=a.example user= from=192.0.2.1 status=200 size=-1 took=50000"},
		{"a directive", "log_format main escape=default '$remote_addr - [$time_local] '\n  '\"$request\" $status';", `192.0.2.1 - [22/Nov/2026:10:00:01 +0000] "GET /d HTTP/1.1" 200`,
			"2026-11-22T10:00:01.000000 GET /d host= user= from=192.0.2.1 status=200 size=-1 took=0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls, counts, err := read(t, test.line+"\r\n", test.format, nil)
			if err != nil || len(calls) != 1 || calls[0] != test.want {
				t.Errorf("read\n%v\nwant\n[%s]\n%+v %v", calls, test.want, counts, err)
			}
		})
	}
}

func TestFieldsFromElsewhere(t *testing.T) {
	caddy := `{"ts":1795687201.5,"request":{"remote_ip":"10.0.0.1","method":"GET","host":"h","uri":"/","headers":{"X-Tenant":["acme","b"],"Authorization":["REDACTED"],"x-lower":["l"]}},"status":200,"claims":{"sub":"bob","plan":"free"}}`
	f, err := ParseFormat("caddy", map[string]string{"user": "claims.sub", "value:plan_of": "claims.plan", "header:X-Real-Ip": "request.remote_ip"})
	if err != nil {
		t.Fatal(err)
	}
	var c Call
	p := newClock(time.UTC)
	if err := f.parse(caddy, &p, &c); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintln(c.User, c.Named("value", "plan_of"), c.Named("header", "X-Tenant"), c.Named("header", "Authorization"), c.Named("header", "X-Lower"), c.Named("header", "X-Real-Ip"))
	if got != "bob [free] [acme b] [] [l] [10.0.0.1]\n" {
		t.Error(got)
	}
	traefik := `{"ClientHost":"10.0.0.1","RequestMethod":"GET","RequestPath":"/","StartUTC":"2026-11-22T10:00:01Z","request_X-Tenant":"acme"}`
	if f, err = ParseFormat("traefik", nil); err != nil || f.parse(traefik, &p, &c) != nil || fmt.Sprint(c.Named("header", "X-Tenant")) != "[acme]" {
		t.Errorf("%+v %v", c, err)
	}
	flat := `{"@timestamp":"2026-11-22T10:00:01Z","source.ip":"192.0.2.1","http":{"request.method":"GET"},"verb":"GET","url":"/flat","trace":{}}`
	calls, _, err := read(t, flat, "json", map[string]string{"address": "source.ip", "method": "verb", "uri": "url"})
	if err != nil || len(calls) != 1 || !strings.Contains(calls[0], "GET /flat host= user= from=192.0.2.1") {
		t.Error(calls, err)
	}
	envoy := `[2026-11-22T10:00:01.310Z] "GET / HTTP/2" 200 - 0 0 2 1 "203.0.113.9, 10.0.35.28" "192.0.2.7" "alice" "a.test" "-"`
	f, err = ParseFormat("envoy_text", map[string]string{"user": "%REQ(X-REQUEST-ID)%", "address": "REQ(USER-AGENT)"})
	if err != nil || f.parse(envoy, &p, &c) != nil || fmt.Sprintln(c.User, c.Address, c.Named("header", "X-Forwarded-For")) != "alice 192.0.2.7 [203.0.113.9, 10.0.35.28]\n" {
		t.Errorf("%+v %v", c, err)
	}
	combined := `192.0.2.1 - - [22/Nov/2026:00:00:01 +0000] "GET / HTTP/1.1" 200 5 "-" "alice"`
	calls, _, err = read(t, combined, "", map[string]string{"user": "$http_user_agent"})
	if err != nil || len(calls) != 1 || !strings.Contains(calls[0], "user=alice") {
		t.Error(calls, err)
	}
}

func TestWrongFormats(t *testing.T) {
	for _, test := range []struct {
		format string
		fields map[string]string
		want   string
	}{
		{"apache", nil, `no format "apache"`},
		{"$a$b", nil, "nothing separates $a"},
		{"$remote_addr", map[string]string{"user": "who"}, `no variable "who"`},
		{"$time_local $request_method", nil, "does not say what is called"},
		{"$remote_addr $request", nil, "does not say when a call was"},
		{"json", map[string]string{"users": "u"}, `no field "users"`},
		{"json", map[string]string{"header": "u"}, `no field "header"`},
		{"json", map[string]string{"user": ""}, "is read from nothing"},
	} {
		if _, err := ParseFormat(test.format, test.fields); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q %v: %v, want %q", test.format, test.fields, err, test.want)
		}
	}
}

const line = `192.0.2.1 - - [22/Nov/2026:00:00:01 +0000] "GET / HTTP/1.1" 200 5` + "\n"

// Lines that cannot be read are counted, and the first three are shown. Connections without a request
// and messages of the proxy are no calls.
func TestLinesThatAreNoCalls(t *testing.T) {
	text := strings.Repeat(line, 3) + "\n\x00\x01\xff\n" + `192.0.2.1 - - [22/Foo/2026:00:00:01 +0000] "GET / HTTP/1.1" 200 5` + "\n" +
		`192.0.2.1 - - [22/Nov/2026:00:00:01 +0000] "\x16\x03\x01" 400 5` + "\n" + `192.0.2.1 - - [22/Nov/2026:00:00:01 +0000] "-" 408 0` + "\n" +
		`192.0.2.1 - - [22/Nov/9999:00:00:01 +0000] "GET / HTTP/1.1" 200 5` + "\nlast"
	calls, counts, err := read(t, text, "", nil)
	if err != nil || len(calls) != 3 || counts.Lines != 9 || counts.Others != 2 || counts.Bad != 4 || len(counts.Examples) != 3 {
		t.Fatalf("%d calls, %+v, %v", len(calls), counts, err)
	}
	if e := counts.Examples[0]; e.Line != 5 || e.Text != `"\x00\x01\xff"` || e.Log != "test.log" {
		t.Errorf("%+v", e)
	}
	if e := counts.Examples[2]; !strings.Contains(e.Why, "year 9999") {
		t.Errorf("%+v", e)
	}
	_, counts, err = read(t, `{"level":"info","ts":1795341601.2,"msg":"serving"}`+"\n", "caddy", nil)
	if err != nil || counts.Others != 1 || counts.Bad != 0 {
		t.Errorf("%+v %v", counts, err)
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", maxLine+1)
	calls, counts, err := read(t, line+long+"\n"+line, "", nil)
	if err != nil || len(calls) != 2 || counts.Bad != 1 || counts.Examples[0].Why != errLong.Error() {
		t.Errorf("%d calls, %+v, %v", len(calls), counts, err)
	}
	f, _ := ParseFormat("", nil)
	if _, err := Open("zero", endlessReader{}, f, time.UTC, new(Counts)); !errors.Is(err, errEndless) {
		t.Errorf("an endless line: %v", err)
	}
}

// A log whose format was named wrongly is not read to its end.
func TestWrongFormatEndsEarly(t *testing.T) {
	bad := strings.Repeat("x\n", maxBadStart+1)
	if _, counts, err := read(t, bad, "common", nil); err == nil || counts.Lines != maxBadStart || !strings.Contains(err.Error(), "none of its first 10000 lines") {
		t.Errorf("%+v, %v", counts, err)
	}
	if calls, counts, err := read(t, line+bad+line, "common", nil); err != nil || len(calls) != 2 || counts.Bad != maxBadStart+1 {
		t.Errorf("%+v, %v", counts, err)
	}
}

type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) { return len(p), nil }

func TestInput(t *testing.T) {
	packed := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, text)
		_ = w.Close()
		return b.String()
	}
	whole := packed(line) + packed("\xef\xbb\xbf"+line)
	cut := packed(strings.Repeat(line, 20_000))
	for _, test := range []struct {
		name, text string
		calls      int
		want       string
	}{
		{"empty", "", 0, ""},
		{"empty lines", "\n\r\n\n", 0, ""},
		{"byte order mark", "\xef\xbb\xbf" + line, 1, ""},
		{"gzip", packed(line), 1, ""},
		{"cut off", cut[:len(cut)-20], -1, ErrCutOff.Error()},
		{"zstd", "\x28\xb5\x2f\xfd....", 0, "zstd -dc"},
		{"gzip of nothing", packed(""), 0, ""},
		{"several gzips", whole[:len(packed(line))] + packed(line), 2, ""},
		{"binary", "\x7fELF\x02\x01\n\x00\x00\n", 0, "no known format"},
	} {
		calls, _, err := read(t, test.text, "", nil)
		if test.calls >= 0 && len(calls) != test.calls || (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %d calls, %v", test.name, len(calls), err)
		}
	}
	broken := errors.New("broken")
	f, _ := ParseFormat("common", nil)
	l, err := Open("b", io.MultiReader(strings.NewReader(line), iotest.ErrReader(broken)), f, time.UTC, new(Counts))
	if err != nil {
		t.Fatal(err)
	}
	m := Merge([]*Log{l}, true)
	for m.Next() != nil {
	}
	if !errors.Is(m.Errs()[0], broken) {
		t.Error(m.Errs())
	}
}
