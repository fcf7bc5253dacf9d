package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/operate"
)

// action is an act that somebody tries.
type action struct {
	fields        url.Values
	rule, subject string
	note          string
}

// maxBody bounds the body of an act.
const maxBody = 64 << 10

// commonFields are the fields of all acts.
var commonFields = []string{"rule", "subject", "note"}

// read reads an act from the body of a request, and never from its URL.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, api bool, act act) (a *action, status int, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the body must have at most %d bytes", maxBody)
	}
	wanted, parse := "application/x-www-form-urlencoded", url.ParseQuery
	if api {
		wanted, parse = "application/json", act.parseJSON
	}
	if sent, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || sent != wanted {
		return nil, http.StatusUnsupportedMediaType, errors.New("the body must be " + wanted)
	}
	fields, err := parse(string(body))
	if err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("the body cannot be read as %s: %w", wanted, err)
	}
	return h.actionOf(fields)
}

func (h *Handler) actionOf(fields url.Values) (a *action, status int, err error) {
	a = &action{fields: fields, note: strings.TrimSpace(fields.Get("note"))}
	a.rule, err = parse(fields.Get("rule"))
	if err == nil {
		a.subject, err = h.operator.Subject(fields.Get("subject"))
	}
	return a, http.StatusBadRequest, err
}

// parseJSON reads an object of texts and numbers. Unknown names are errors: a misspelled "for" would
// make an override without an end.
func (act act) parseJSON(body string) (url.Values, error) {
	var fields map[string]any
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return nil, errors.New("it must be an object of texts and numbers")
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("there is more than an object")
	}
	values, known := make(url.Values), slices.Concat(commonFields, act.fields)
	for name, value := range fields {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown field %q: the fields are %s", name, strings.Join(known, ", "))
		}
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
func (a *action) override(now time.Time) (o operate.Override, err error) {
	o.Note = a.note
	switch kind := a.fields.Get("kind"); kind {
	case "unlimited":
		o.Unlimited = true
	case "blocked":
		o.Blocked = true
	case "limits", "":
		if o.Limits, err = operate.ParseLimits(a.fields.Get("limits")); err != nil {
			return o, fmt.Errorf("limits = %q: %w", a.fields.Get("limits"), err)
		}
	default:
		return o, fmt.Errorf("kind = %q: must be limits, unlimited or blocked", kind)
	}
	if strings.TrimSpace(a.fields.Get("for")) == "" {
		return o, nil // until it is removed
	}
	span, err := a.span("for")
	o.Until = now.Add(span)
	return o, err
}
