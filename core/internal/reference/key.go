package reference

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"sync"
)

// MinKey is the length of the shortest key, in bytes.
const MinKey = 32

// Keys seals references with its first key, and opens those sealed with any of its keys.
type Keys []*Key

// Key is one key. It is safe for concurrent use.
type Key struct {
	aead    cipher.AEAD
	workers sync.Pool // of *worker
}

// worker holds what one goroutine needs to seal a reference.
type worker struct {
	subjects      hash.Hash // the MAC of subjects
	plain, sealed []byte
}

// New returns the keys that are made from these secrets, of at least MinKey bytes each.
func New(secrets [][]byte) Keys {
	var keys Keys
	for _, secret := range secrets {
		keys = append(keys, newKey(secret))
	}
	return keys
}

func newKey(secret []byte) *Key {
	forSubjects := derive(secret, "subjects")
	block, err := aes.NewCipher(derive(secret, "encryption"))
	if err != nil {
		panic(err) // only if the length is wrong
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // only for a cipher with another block size
	}
	k := &Key{aead: aead}
	k.workers.New = func() any { return &worker{subjects: hmac.New(sha256.New, forSubjects)} }
	return k
}

func derive(secret []byte, use string) []byte {
	derived, err := hkdf.Key(sha256.New, secret, nil, "accesslimit reference: "+use, 32)
	if err != nil {
		panic(err) // only if more bytes were asked for
	}
	return derived
}

// Digest returns the digest of a subject under this key. Without the key, nobody can check whether
// a guessed subject has a digest.
func (k *Key) Digest(subject string) (digest [digestSize]byte) {
	w := k.workers.Get().(*worker)
	defer k.workers.Put(w)
	w.subjects.Reset()
	w.plain = append(w.plain[:0], subject...) // because converting the string would allocate
	w.subjects.Write(w.plain)
	w.plain = w.subjects.Sum(w.plain[:0])
	copy(digest[:], w.plain)
	return digest
}

// form is the version in front of the sealed content, which authenticates it.
var form = []byte{version}

// Seal returns the text of a reference about a subject, or about no subject if it is "". It sets
// the content's Digest.
func (k Keys) Seal(c *Content, subject string) string {
	c.Digest = [digestSize]byte{}
	if subject != "" {
		c.Digest = k[0].Digest(subject)
	}
	w := k[0].workers.Get().(*worker)
	defer k[0].workers.Put(w)
	w.plain = c.append(w.plain[:0])
	w.sealed = k[0].aead.Seal(append(w.sealed[:0], form...), nil, w.plain, form)
	return encode(w.sealed)
}

var errSealed = errors.New("is incomplete, was changed, or was written with another key")

// Open reads the text of a reference, and returns the key with which it was written.
func (k Keys) Open(text string) (c Content, by *Key, err error) {
	b, err := decode(text)
	switch {
	case err != nil:
		return c, nil, err
	case b[0] != version:
		return c, nil, fmt.Errorf("has the form %d, which this version of the library does not know, or a wrong character", b[0])
	}
	for _, key := range k {
		if plain, err := key.aead.Open(nil, nil, b[1:], form); err == nil && c.read(plain) {
			return c, key, nil
		}
	}
	return c, nil, errSealed
}
