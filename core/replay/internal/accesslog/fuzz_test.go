package accesslog

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// No line stops a format: each is a call, or is counted.
func FuzzFormats(f *testing.F) {
	for i := range inOrder {
		for _, text := range []string{line, `{"ts":1.5,"request":{"headers":{"A":["b"]}}}`, `{"a":[1,{"b":"\u0041`, "\x1f\x8b\x08", `"\\" [] "\x2`} {
			f.Add(text, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, text string, n uint8) {
		format, err := ParseFormat(inOrder[int(n)%len(inOrder)], nil)
		if err != nil {
			t.Fatal(err)
		}
		var counts Counts
		l, err := Open("log", strings.NewReader(text), format, time.UTC, &counts)
		if err != nil {
			return
		}
		m := Merge([]*Log{l}, true)
		calls, last := 0, int64(0)
		for c := m.Next(); c != nil; c = m.Next() {
			if c.Began < last || c.Took < 0 || c.URI == "" || c.Method == "" {
				t.Fatalf("%+v after %d", c, last)
			}
			c.Named("header", "A")
			calls, last = calls+1, c.Began
		}
		if calls != counts.Calls || counts.Lines != counts.Calls+counts.Others+counts.Bad {
			t.Fatalf("%d calls of %+v", calls, counts)
		}
	})
}

// A log_format that is accepted reads any line without a panic.
func FuzzLogFormat(f *testing.F) {
	f.Add(`$remote_addr "$request" $status`, `192.0.2.1 "GET / HTTP/1.1" 200`)
	f.Add(`log_format m '$time_local' '$x';`, `\`)
	f.Add(`[%START_TIME(%s)%] %REQ(A?:PATH):9% %REQ()%\n`, `[1] /\ `)
	f.Fuzz(func(t *testing.T, form, text string) {
		format, err := ParseFormat(form, nil)
		if err != nil || format.parser == nil {
			return
		}
		p := newClock(time.UTC)
		_ = format.parse(text, &p, new(Call))
	})
}

// Every JSON object that encoding/json reads is read here, with the same texts.
func FuzzJSON(f *testing.F) {
	f.Add(`{"a":"x","b":{"c":["\u00e9",1.5e3,null,true]},"h":{"X-A":["1"]}}`)
	f.Add(` { "a" : [ ] , "a\n" : { } } `)
	f.Fuzz(func(t *testing.T, text string) {
		var object map[string]any
		if len(text) > 10_000 || !utf8.ValidString(text) || strings.Count(text, "{")+strings.Count(text, "[") > 50 || json.Unmarshal([]byte(text), &object) != nil || object == nil {
			return
		}
		root := new(jsonFields)
		root.add("a", field{"value", "a"})
		var c Call
		if err := root.parse(text, nil, &c); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		want, isText := object["a"].(string)
		if got := c.Named("value", "a"); isText && want != "" && want != "-" && !slices.Contains(got, want) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
	})
}
