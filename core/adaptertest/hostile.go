package adaptertest

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/accesslimit/accesslimit/core"
)

// hostileTexts are names that callers may choose. None of them may have a special effect in a key,
// a header or a log.
var hostileTexts = []string{
	"a", "A", "a ", " a", "a\t", "a\x00", "a\x00b", "\x00", "\x00\x00", "\x7f", "\x1b[2J", "\b\b\b",
	"}{", "{", "}", "{}", "a}:{b", "{a}", "a}:rule:sw1:1", "a:b", ":", "::", "%", "%7D%7B", "%7d", "%25", "%00", "a%00",
	"#", "#" + core.Digest(strings.Repeat("a", 65)), "user:a", "ip:127.0.0.1", "ip:unknown", "ip:127.0.0.1 ", "value:a", "header:x-key:a",
	"|", "a|b", "a%7Cb", "a,b", "a, b", ",", ";", "=", "a=b; c=d", "*", "?", "[a]", "a\\", "\\", `"`, `""`, `a"`, `";r=99;t=0`, `", "b";q=9`, "'",
	"\r\nX-Injected: 1", "a\r\nSet-Cookie: a=b", "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "\n", "\r", "a\nb", "a\rb", "\u2028", "\u0085",
	"\nlevel=ERROR msg=injected", "\n{\"level\":\"ERROR\",\"msg\":\"injected\"}", "*3\r\n$8\r\nFLUSHALL\r\n", "redis.call('FLUSHALL')", "$(id)", "`id`", "${a}",
	"\xff", "\xfe", "\xff\xfe", "\xff\xff", "\xc0\xaf", "\xed\xa0\x80", "\xed\xb0\x80", "\xf4\x90\x80\x80", "\ufffd", "\ufffd\ufffd", "\ufeff", "\ufeffa",
	"\u00e9", "e\u0301", "\u202ea", "\u200ba", "\U0001f600", "null", "nil", "undefined", "0", "-1", "true", "<script>", "<!--", "../../etc/passwd", "a/b", "/",
	strings.Repeat("a", 58), strings.Repeat("a", 59), strings.Repeat("a", 60), strings.Repeat("a", 64), strings.Repeat("a", 65),
	strings.Repeat("a", 64) + "b", strings.Repeat("}", 22), strings.Repeat("}", 21), strings.Repeat("\x00", 100), strings.Repeat("\x00", 101),
	strings.Repeat("\xff", 900), strings.Repeat("\xff", 899) + "\xfe", strings.Repeat("\r\n", 450), strings.Repeat("}{", 450),
}

// witness records what a limiter logs, in both of slog's formats, and the prefix of its keys.
type witness struct {
	mu     sync.Mutex
	json   bytes.Buffer
	text   bytes.Buffer
	prefix string
}

// record makes the limiter log to the witness. It is an option for site.limiter.
func (w *witness) record(o *core.Options) {
	w.prefix = o.Prefix
	o.Logger = slog.New(slog.NewMultiHandler(slog.NewJSONHandler(&locked{w, &w.json}, nil), slog.NewTextHandler(&locked{w, &w.text}, nil)))
}

// locked writes to one of a witness's buffers.
type locked struct {
	w  *witness
	to *bytes.Buffer
}

// Write implements io.Writer.
func (l *locked) Write(p []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.to.Write(p)
}

// textLine matches a line of slog's TextHandler: names, and values that are plain or quoted, all
// printable.
var textLine = regexp.MustCompile(`^time=[^ ="]+ level=[A-Z]+ msg="accesslimit[^"]*"( [a-z]+=("([^"\\]|\\.)*"|[^ ="]*))*$`)

// wantSoundLog checks that no text of a caller began a log line, and returns the number of lines.
func (w *witness) wantSoundLog(t *testing.T) (lines int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(w.json.String()) {
		lines++
		var said struct{ Msg string }
		if err := json.Unmarshal([]byte(line), &said); err != nil || !strings.HasPrefix(said.Msg, "accesslimit") {
			t.Errorf("the log has the line %q: %v", line, err)
		}
	}
	for line := range strings.Lines(w.text.String()) {
		lines--
		if line = strings.TrimSuffix(line, "\n"); !textLine.MatchString(line) || !printable(line) {
			t.Errorf("the log has the line %q", line)
		}
	}
	if lines != 0 {
		t.Errorf("the JSON log has %d lines more than the text log", lines)
	}
	return strings.Count(w.text.String(), "\n")
}

// soundKey matches every key, without the prefix.
var soundKey = regexp.MustCompile(`^:\{[!-z|~]+\}:[!-z|~]+:[a-z]+[0-9]+:[0-9]+$`)

// wantSoundKeys checks that the limiter has this many keys, each short and matching soundKey. In
// process there is nothing to check.
func (w *witness) wantSoundKeys(t *testing.T, s *site, many int) {
	t.Helper()
	if s.client == nil {
		return
	}
	var keys []string
	found := s.client.Scan(t.Context(), 0, w.prefix+":*", 1000).Iterator()
	for found.Next(t.Context()) {
		if own := strings.TrimPrefix(found.Val(), w.prefix); own != ":{%mark0}:mk1" && !strings.HasPrefix(own, ":{%top") {
			keys = append(keys, found.Val()) // excludes the server's marks and the tables of top subjects
		}
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) != many { // SCAN may name a key twice
		t.Errorf("there are %d keys, want one for each of %d callers", len(keys), many)
	}
	for _, key := range keys {
		if !soundKey.MatchString(strings.TrimPrefix(key, w.prefix)) || len(key) > 200 {
			t.Errorf("there is the key %q", key)
		}
	}
}

func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) })
}

// ours are the headers that a reply may have: the library's and those that servers add.
var ours = []string{
	"Ratelimit", "Ratelimit-Policy", "Retry-After", "Cache-Control", "Www-Authenticate", "Content-Type", "Content-Length", "Date",
	"Connection", "Server", "X-Content-Type-Options", "Allow", "Location", "Grpc-Retry-Pushback-Ms", details,
}

// details is the one header that may hold any bytes.
const details = "Grpc-Status-Details-Bin"

// wantSoundReply checks that a reply has only headers that the service sets, and only printable
// ASCII in them.
func wantSoundReply(t *testing.T, reply Reply) {
	t.Helper()
	for name, values := range reply.Header {
		if !slices.Contains(ours, name) {
			t.Errorf("the reply has the header %s: %q", name, values)
		}
		for _, value := range values {
			if name != details && strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
				t.Errorf("the reply has the header %s: %q", name, value)
			}
		}
	}
	if strings.Contains(reply.Body, "injected") || strings.Contains(reply.Body, "\n") && reply.Status == 429 {
		t.Errorf("the reply has the body %q", reply.Body)
	}
}
