package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// action is an act that somebody tries.
type action struct {
	fields        url.Values
	rule, subject string
	note          string
}

// maxBody bounds the body of an act.
const maxBody = 64 << 10

// read reads an act from the body of a request, and never from its URL.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, api bool) (a *action, status int, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the body must have at most %d bytes", maxBody)
	}
	wanted, parse := "application/x-www-form-urlencoded", url.ParseQuery
	if api {
		wanted, parse = "application/json", parseJSON
	}
	if sent, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || sent != wanted {
		return nil, http.StatusUnsupportedMediaType, errors.New("the body must be " + wanted)
	}
	fields, err := parse(string(body))
	if err != nil {
		return nil, http.StatusBadRequest, errors.New("the body cannot be read as " + wanted)
	}
	return h.actionOf(fields)
}

func (h *Handler) actionOf(fields url.Values) (a *action, status int, err error) {
	a = &action{fields: fields, note: strings.TrimSpace(fields.Get("note"))}
	a.rule, err = parse(fields.Get("rule"))
	if err == nil {
		a.subject, err = h.parseSubject(fields.Get("subject"))
	}
	return a, http.StatusBadRequest, err
}

// parseJSON reads an object of texts and numbers.
func parseJSON(body string) (url.Values, error) {
	var fields map[string]any
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("more than an object")
	}
	values := make(url.Values)
	for name, value := range fields {
		switch value := value.(type) {
		case string:
			values.Set(name, value)
		case json.Number:
			values.Set(name, value.String())
		default:
			return nil, fmt.Errorf("%q is neither a text nor a number", name)
		}
	}
	return values, nil
}

// span returns a field that holds a duration: one of Go, or a number of days such as 7d.
func (a *action) span(name string) (time.Duration, error) {
	text := strings.TrimSpace(a.fields.Get(name))
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 12); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	span, err := time.ParseDuration(text)
	if err != nil || span <= 0 {
		return 0, fmt.Errorf("%q = %q: must be a duration such as 30m, 24h or 7d", name, text)
	}
	return span, nil
}

// override returns the override that the fields describe.
func (a *action) override(now time.Time) (o core.Override, err error) {
	o.Note = a.note
	switch kind := a.fields.Get("kind"); kind {
	case "unlimited":
		o.Unlimited = true
	case "blocked":
		o.Blocked = true
	case "max", "":
		if o.Max, err = a.number("max"); err != nil {
			return o, err
		}
		if strings.TrimSpace(a.fields.Get("burst")) != "" {
			if o.Burst, err = a.number("burst"); err != nil {
				return o, err
			}
		}
	default:
		return o, fmt.Errorf("kind = %q: must be max, unlimited or blocked", kind)
	}
	if strings.TrimSpace(a.fields.Get("for")) == "" {
		return o, nil // until it is removed
	}
	span, err := a.span("for")
	o.Until = now.Add(span)
	return o, err
}

func (a *action) number(name string) (int, error) {
	n, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(a.fields.Get(name)), ",", ""))
	if err != nil {
		return 0, fmt.Errorf("%s = %q: must be a whole number", name, a.fields.Get(name))
	}
	return n, nil
}
