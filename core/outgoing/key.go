package outgoing

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"
)

// ByCredential returns the host that a request goes to, and a digest of the credential with which it
// does, so that each account has limits of its own: api.github.com:9f86d081884c7d65. Without a
// credential it returns the host. The credential is that of Authorization, or of X-Api-Key. In a
// scheme that signs each request, it is the parameter that names the account.
//
// Danger: a token that is renewed gets another key, and its limits start afresh. Then use a function
// that knows the account.
func ByCredential(r *http.Request) string {
	host := strings.ToLower(r.URL.Host)
	credential := account(r.Header.Get("Authorization"))
	if credential == "" {
		credential = r.Header.Get("X-Api-Key")
	}
	if credential == "" {
		return host
	}
	return host + ":" + digest(credential)
}

// digest returns 64 bits of a hash of a secret, which tell accounts apart.
func digest(secret string) string {
	sum := sha256.Sum256([]byte("accesslimit outgoing\n" + secret))
	return hex.EncodeToString(sum[:8])
}

// named is the parameter that names the account in schemes that sign each request: Digest, Signature,
// Hawk, OAuth; AWS4-HMAC-SHA256, which has a date behind the account's name. Its value may be quoted.
var named = regexp.MustCompile(`(?i)^[^ =]+(?:[^"]|"(?:[^"\\]|\\.)*")*?[ ,](?:(?:username|keyId|id|oauth_token)=(?:"((?:[^"\\]|\\.)+)"|([^", ]+))|Credential=([^", /]+))`)

// account returns the part of a credential that is the same in each request.
func account(credential string) string {
	if found := named.FindStringSubmatch(credential); found != nil {
		return cmp.Or(found[1:]...)
	}
	return credential
}

// withResource returns the key of one of a caller's quotas.
func withResource(key, resource string) string {
	if resource == "" {
		return key
	}
	return key + "/" + resource
}
