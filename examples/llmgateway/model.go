package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// question is what the gateway and its model are asked.
type question struct {
	Prompt    string `json:"prompt"`
	MaxTokens int    `json:"max_tokens"`
}

func readQuestion(body io.Reader) (q question, err error) {
	if err = json.NewDecoder(body).Decode(&q); err != nil {
		return q, err
	}
	if q.MaxTokens < 1 || q.MaxTokens > 4000 {
		return q, fmt.Errorf("max_tokens is %d, but must be 1 to 4000", q.MaxTokens)
	}
	return q, nil
}

// tokens returns the tokens of the prompt. Here a word is a token.
func (q question) tokens() int { return 1 + len(strings.Fields(q.Prompt)) }

// errNotBegun means that the model has not begun to answer, and so has used nothing.
var errNotBegun = errors.New("the model has not begun")

// ask asks the model, and returns its stream.
func (g *gateway) ask(ctx context.Context, q question) (io.ReadCloser, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, g.model, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	var failed *net.OpError
	switch {
	case errors.As(err, &failed) && failed.Op == "dial":
		return nil, errNotBegun
	case err != nil:
		return nil, err
	case response.StatusCode != http.StatusOK:
		_ = response.Body.Close()
		return nil, errNotBegun
	}
	return response.Body, nil
}

// part is a line of the model's stream: a text, or at the end what the call has used.
type part struct {
	Text   string
	Tokens int
	Usage  *usage `json:",omitempty"`
}

// longestPrompt is the largest number of tokens that the model reads.
const longestPrompt = 100_000

// generate is a made-up model. It has cached half of each prompt, and answers with three quarters of
// max_tokens, 16 at a time.
func generate(w http.ResponseWriter, r *http.Request) {
	q, err := readQuestion(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if q.tokens() > longestPrompt {
		http.Error(w, "The prompt is too long.", http.StatusBadRequest)
		return
	}
	used := usage{Input: q.tokens(), Cached: q.tokens() / 2, Output: max(1, 3*q.MaxTokens/4)}
	stream := json.NewEncoder(w)
	for left := used.Output; left > 0 && r.Context().Err() == nil; {
		n := min(16, left)
		left -= n
		_ = stream.Encode(part{Text: strings.TrimSpace(strings.Repeat("blah ", n)), Tokens: n}) // a caller who has left needs no answer
		_ = http.NewResponseController(w).Flush()
		time.Sleep(5 * time.Millisecond)
	}
	_ = stream.Encode(part{Usage: &used})
}
