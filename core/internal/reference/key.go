package reference

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash"
	"sync"
)

// MinKey is the length of the shortest key, in bytes.
const MinKey = 32

// Keys seals references with its first key, and opens those of any of its keys.
type Keys []*Key

// Key is one key. It is safe for concurrent use.
type Key struct {
	block               cipher.Block
	macs                sync.Pool // of *macs
	forMAC, forSubjects []byte
}

// macs holds what one goroutine works with.
type macs struct {
	content, subject hash.Hash
	b                [maxSize]byte
	text             [maxChars + maxChars/group]byte
	sum              [sha256.Size]byte
	pad, counter     [aes.BlockSize]byte
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
	derive := func(use string) []byte {
		derived, err := hkdf.Key(sha256.New, secret, nil, "accesslimit reference: "+use, 32)
		if err != nil {
			panic(err) // only for more bytes than these
		}
		return derived
	}
	block, err := aes.NewCipher(derive("encryption"))
	if err != nil {
		panic(err) // only for another length
	}
	k := &Key{block: block, forMAC: derive("authentication"), forSubjects: derive("subjects")}
	k.macs.New = func() any {
		return &macs{content: hmac.New(sha256.New, k.forMAC), subject: hmac.New(sha256.New, k.forSubjects)}
	}
	return k
}

// Digest returns the digest of a subject under this key. Without the key, nobody can find out
// whether a digest is that of a subject they guess.
func (k *Key) Digest(subject string) (digest [digestSize]byte) {
	m := k.macs.Get().(*macs)
	defer k.macs.Put(m)
	return m.digest(subject)
}

func (m *macs) digest(subject string) (digest [digestSize]byte) {
	m.subject.Reset()
	for len(subject) > 0 { // through b, because converting the string would allocate
		n := copy(m.b[:], subject)
		m.subject.Write(m.b[:n])
		subject = subject[n:]
	}
	copy(digest[:], m.subject.Sum(m.sum[:0]))
	return digest
}

// Seal returns the text of a reference about a subject, or about nobody if that is "". It sets the
// content's Digest.
func (k Keys) Seal(c *Content, subject string) string {
	first := k[0]
	m := first.macs.Get().(*macs)
	defer first.macs.Put(m)
	c.Digest = [digestSize]byte{}
	if subject != "" {
		c.Digest = m.digest(subject)
	}
	b := append(m.b[:0], version)
	b = c.append(b[:head])
	end := len(b)
	b = b[:(end+step-1)/step*step]
	clear(b[end:])
	copy(b[1:head], m.iv(b))
	first.crypt(m, b)
	return string(appendGroups(m.text[:0], b))
}

// iv returns the MAC of the version and of the plain content.
func (m *macs) iv(b []byte) []byte {
	m.content.Reset()
	m.content.Write(b[:1])
	m.content.Write(b[head:])
	return m.content.Sum(m.sum[:0])[:ivSize]
}

// crypt encrypts or decrypts the content. The counter has the IV's 96 bits and 32 of its own, so
// the blocks of different IVs never overlap.
func (k *Key) crypt(m *macs, b []byte) {
	clear(m.counter[:])
	copy(m.counter[:], b[1:head])
	for content := b[head:]; len(content) > 0; {
		k.block.Encrypt(m.pad[:], m.counter[:])
		content = content[subtle.XORBytes(content, content, m.pad[:]):]
		m.counter[aes.BlockSize-1]++ // at most eleven blocks
	}
}

var errSealed = errors.New("was changed, or written with a key that is not among these")

// Open reads the text of a reference, and returns the key that it was written with.
func (k Keys) Open(text string) (c Content, by *Key, err error) {
	b, err := decode(text)
	switch {
	case err != nil:
		return c, nil, err
	case b[0] != version:
		return c, nil, fmt.Errorf("has the form %d, which this version of the library does not know, or a wrong character", b[0])
	}
	for _, key := range k {
		if opened := key.open(b); opened != nil && c.read(opened) {
			return c, key, nil
		}
	}
	return c, nil, errSealed
}

// open returns the content of a reference, or nil if this key did not write it.
func (k *Key) open(sealed []byte) []byte {
	m := k.macs.Get().(*macs)
	defer k.macs.Put(m)
	b := append([]byte(nil), sealed...)
	k.crypt(m, b)
	if !hmac.Equal(m.iv(b), sealed[1:head]) {
		return nil
	}
	return b[head:]
}
