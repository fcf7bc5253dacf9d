package console

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/quote"
	"github.com/accesslimit/accesslimit/core/operate"
)

// show returns a name as the page shows it: unchanged if it can be read and sent back, and otherwise
// as a Go string literal. Browsers cannot send back every byte, and some characters change the
// direction of the text around them. The same of a subject is its operate.SubjectText.
func show(text string) string {
	if quote.Printable(text) && !strings.HasPrefix(text, `"`) && strings.TrimSpace(text) == text {
		return text
	}
	return strconv.Quote(text)
}

// shownName is show for a name that may be missing.
func shownName(name string) string {
	if name == "" {
		return ""
	}
	return show(name)
}

// readable returns a longer text, such as a note, in which everything that cannot be printed is
// escaped, except line breaks.
func readable(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !quote.Printable(line) {
			quoted := strconv.Quote(line)
			lines[i] = quoted[1 : len(quoted)-1]
		}
	}
	return strings.Join(lines, "\n")
}

// parse reads a name in the form that show returns, or as somebody typed it.
func parse(text string) (string, error) {
	if !strings.HasPrefix(text, `"`) {
		return strings.TrimSpace(text), nil
	}
	literal, err := strconv.Unquote(strings.TrimSpace(text))
	if err != nil {
		return "", errors.New(`a text that begins with " must be a string literal of Go, such as "\x00\xff"`)
	}
	return literal, nil
}

// subject returns a subject as it can be sent back, or its digest for viewers who may not see it.
func (h *Handler) subject(who Identity, subject string) string {
	if subject == "" || !h.redacts(who) {
		return operate.SubjectText(subject)
	}
	return h.digest(subject)
}

// user returns the name of a user, or its digest for viewers who may not see it.
func (h *Handler) user(who Identity, name string) string {
	if !h.redacts(who) {
		return shownName(name)
	}
	return h.subject(who, name)
}

// digest returns what a viewer sees in place of a subject. It is keyed, because otherwise the
// digests of all addresses could be computed.
func (h *Handler) digest(subject string) string {
	mac := hmac.New(sha256.New, h.redactKey)
	mac.Write([]byte(subject))
	return "subject-" + hex.EncodeToString(mac.Sum(nil)[:6])
}

// about returns a text about a subject, with the subject hidden from viewers who may not see it.
func (h *Handler) about(who Identity, subject, text string) string {
	text = readable(text)
	if subject == "" || !h.redacts(who) {
		return text
	}
	stored := string([]rune(subject)) // notes are stored as JSON, which replaces bytes that are not UTF-8
	for _, form := range []string{strconv.Quote(subject), readable(subject), subject, stored} {
		text = strings.ReplaceAll(text, form, h.digest(subject))
	}
	return text
}

// problem returns an error in words for somebody who operates the service.
func problem(err error) string {
	store := new(core.StoreError)
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &store):
		return readable(err.Error())
	case store.Class == core.StoreRefused:
		return "Redis refuses this part. Other parts may work: " + readable(store.Err.Error())
	default:
		return "Redis did not answer (" + string(store.Class) + "): " + readable(store.Err.Error())
	}
}

// uncounted returns why calls are not counted, or "".
func uncounted(err error) string {
	store := new(core.StoreError)
	if errors.As(err, &store) && store.Class == core.StoreRefused {
		return "Redis refuses to count: " + readable(store.Err.Error())
	}
	return problem(err)
}

// span returns a duration as people write it: "1 h 30 min".
func span(d time.Duration) string {
	if d < 0 {
		return "-" + span(-max(d, -math.MaxInt64)) // the smallest duration cannot be negated
	}
	if d < time.Second {
		return d.Round(10 * time.Microsecond).String()
	}
	const day = 24 * time.Hour
	units := []struct {
		size time.Duration
		name string
	}{{day, "days"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	for i, unit := range units {
		if d < unit.size {
			continue
		}
		text := amount(d/unit.size, unit.name)
		if i+1 < len(units) {
			if rest := d % unit.size / units[i+1].size; rest > 0 {
				text += " " + amount(rest, units[i+1].name)
			}
		}
		return text
	}
	return ""
}

func amount(n time.Duration, unit string) string {
	if n == 1 && unit == "days" {
		unit = "day"
	}
	return strconv.FormatInt(int64(n), 10) + " " + unit
}

// moment returns a time as the page shows it, or "" for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// number returns a number with commas: 1,234,567.
func number(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// rate returns calls per second: "0", "0.3", "12", "1,234".
func rate(perSecond float64) string {
	switch {
	case perSecond < 0.05:
		return "0"
	case perSecond < 9.95:
		return strings.TrimSuffix(strconv.FormatFloat(perSecond, 'f', 1, 64), ".0")
	default:
		return number(uint64(perSecond + 0.5))
	}
}
