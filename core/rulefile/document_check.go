package rulefile

import (
	"encoding/json"
	"fmt"

	"github.com/accesslimit/accesslimit/core/internal/fleetrules"
)

// checkDocument returns what is wrong with the text of a document, as far as that can be known
// without the functions and the Limiter of a service.
func checkDocument(text string) error {
	_, err := CheckText(Service{}, "document", text)
	return err
}

// documentSources returns the text of a document as the loader reads it. The name stands for the
// document in messages. A text that is valid JSON is read as JSON, and any other as YAML.
func documentSources(name, text string, wrong *problems) []source {
	wrong.files = append(wrong.files, name)
	if len(text) > fleetrules.MaxText {
		wrong.add(&Error{Place: Place{File: name}, Err: fmt.Errorf("has %d bytes, want at most %d", len(text), fleetrules.MaxText)})
		return nil
	}
	return []source{{name, []byte(text), json.Valid([]byte(text))}}
}
