package adapter_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/adapter"
)

func TestSentOrder(t *testing.T) {
	const chunks = "Transfer-Encoding: chunked"
	for _, test := range []struct {
		name           string
		raw            []string
		values, sorted []string
	}{
		{"moved by fasthttp", []string{chunks, "X-A: 1", "X-A: 2"}, []string{"2", "1"}, []string{"2", "1", "2"}},
		{"a trailer", []string{"x-a : 1", chunks}, []string{"1", "trailer"}, []string{"1"}},
		{"a trailer only", []string{chunks}, []string{"trailer"}, nil},
		{"replaced by a middleware", []string{"X-A: 1", "X-A: 2"}, []string{"set", "2"}, []string{"set", "2"}},
		{"added by a middleware", []string{"X-A: 1"}, []string{"1", "added"}, []string{"1", "added"}},
		{"deleted by a middleware", []string{"X-A: 1", "X-A: 2", "X-A: 3"}, []string{"1", "3"}, []string{"1", "3"}},
		{"folded", []string{"X-A: 1,", "\t2", "X-A: 3"}, []string{"1, 2", "3"}, []string{"1, 2", "3"}},
		{"the same value twice", []string{"X-A: 1", "X-A: 2", "X-A: 1"}, []string{"1", "1", "2"}, []string{"1", "2", "1"}},
		{"none", []string{"X-B: 1"}, nil, nil},
	} {
		raw := []byte(strings.Join(test.raw, "\r\n") + "\r\n\r\n")
		if got := adapter.SentOrder(raw, "X-A", test.values); !slices.Equal(got, test.sorted) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.sorted)
		}
	}
}
