package reference

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
)

// mostKeys bounds the keys, because reading a reference may have to try all of them.
const mostKeys = 10

// Mistake says what is wrong with secrets: a value, which does not reveal them, and the reason.
type Mistake struct{ Value, Why string }

// ParseSecrets reads secrets in hex, separated by commas or white space.
func ParseSecrets(text string) ([][]byte, *Mistake) {
	var secrets [][]byte
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		secret, err := hex.DecodeString(word)
		if err != nil || len(secret) < MinKey {
			return nil, &Mistake{
				fmt.Sprintf("key %d of %d characters", len(secrets), len(word)),
				fmt.Sprintf("must be at least %d hex digits, as \"openssl rand -hex 32\" prints them", 2*MinKey),
			}
		}
		secrets = append(secrets, secret)
	}
	return secrets, CheckSecrets(secrets)
}

// CheckSecrets returns what is wrong with secrets, or nil.
func CheckSecrets(secrets [][]byte) *Mistake {
	if len(secrets) > mostKeys {
		return &Mistake{fmt.Sprintf("%d keys", len(secrets)), fmt.Sprintf("must be at most %d", mostKeys)}
	}
	for i, secret := range secrets {
		if len(secret) < MinKey {
			return &Mistake{fmt.Sprintf("key %d of %d bytes", i, len(secret)), fmt.Sprintf("must be at least %d random bytes", MinKey)}
		}
	}
	return nil
}
