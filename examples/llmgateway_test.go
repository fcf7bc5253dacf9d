package examples_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The example answers as it says, and as a service with limits should.
func TestLLMGateway(t *testing.T) {
	s := start(t, "llmgateway")
	ask := func(token, body string) (status int, text string) {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://gateway/generate", strings.NewReader(body))
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := s.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(data)
	}
	for _, test := range []struct {
		token, body string
		status      int
	}{
		{"", `{"prompt": "why?", "max_tokens": 300}`, http.StatusUnauthorized},
		{"acme/alice", `{"prompt": "why?", "max_tokens": 300}`, http.StatusOK},
		{"acme/alice", `{"prompt": "why?"}`, http.StatusBadRequest},
		{"acme/alice", `{"prompt": "` + strings.Repeat("why ", 210_000) + `", "max_tokens": 300}`, http.StatusRequestEntityTooLarge},
	} {
		status, text := ask(test.token, test.body)
		if lines := strings.Count(text, "\n"); status != test.status || test.status == http.StatusOK && lines != 15 {
			t.Errorf("%.60s: status %d, want %d, %.60s (%d lines)", test.body, status, test.status, text, lines)
		}
	}
	tooLong := `{"prompt": "` + strings.Repeat("why ", 110_000) + `", "max_tokens": 300}` // the model refuses it, and uses nothing
	for range 3 {
		status, _ := ask("acme/bob", tooLong)
		for end := time.Now().Add(time.Minute); status == http.StatusTooManyRequests && time.Now().Before(end); { // until the former call is settled
			status, _ = ask("acme/bob", tooLong)
		}
		if status != http.StatusBadGateway {
			t.Errorf("a prompt that the model refuses: status %d, want %d", status, http.StatusBadGateway)
		}
	}
}
