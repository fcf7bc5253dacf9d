package fleetrules

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/actor"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/audit"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// Store reads and writes the document of a prefix. It is safe for concurrent use. Its errors are
// those of the caller's context, and *failure.Error.
type Store struct {
	redis   *redisstore.Store
	key     string
	history string // the key of the versions that were replaced
	trail   *audit.Stream
}

// The rights that a user of Redis needs, as failure.RightsPage lists them.
const (
	readRights  = "+getrange"
	writeRights = "+eval +evalsha +getrange +set +time"
	auditRights = "+eval +evalsha +time +xadd +zadd +zcount +zrange +zrem +zscore"
)

//go:embed publish.lua
var publishText string

var publish = algorithm.NewScript(publishText)

// NewStore returns a store. It does not connect. Timeout bounds every call.
func NewStore(client redis.UniversalClient, prefix string, timeout time.Duration) *Store {
	redis := redisstore.New(client, timeout)
	return &Store{redis, Key(prefix), historyKey(prefix), audit.NewStream(redis, prefix)}
}

// Key returns the key of a prefix's document. Its hash tag cannot belong to a subject, where two
// hex digits follow each %.
func Key(prefix string) string { return prefix + ":{%rules}:rd1" }

// Close ends what runs in the background.
func (s *Store) Close() { s.redis.Close() }

// Key returns the key of the document.
func (s *Store) Key() string { return s.key }

// Head returns the head of the current version with a small command. It returns the zero Head if
// there is no document.
func (s *Store) Head(ctx context.Context) (Head, error) {
	value, err := s.read(ctx, maxHead)
	if err != nil || value == "" {
		return Head{}, err
	}
	head, _, err := parseHead(value)
	return head, s.explain(err)
}

// Read returns the current version, or the zero Doc if there is no document.
func (s *Store) Read(ctx context.Context) (Doc, error) {
	value, err := s.read(ctx, maxValue+1)
	if err != nil || value == "" {
		return Doc{}, err
	}
	doc, err := parse(value)
	return doc, s.explain(err)
}

func (s *Store) read(ctx context.Context, most int) (string, error) {
	value, err := s.redis.GetRange(ctx, s.key, most)
	return value, explainRight(err, readRights+" for the key "+s.key)
}

// Publish writes a new version and returns it, if the current version is still after. Otherwise it
// returns the current version without its text, and written is false.
func (s *Store) Publish(ctx context.Context, after Head, author, note, text string) (doc Doc, written bool, err error) {
	author, note = clean(author), clean(note)
	rest, sum := body(author, note, text)
	reply, err := s.redis.RunScript(ctx, publish, s.key,
		strconv.FormatInt(after.Number, 10), strconv.FormatInt(after.At, 10), sum, rest)
	if err != nil {
		return Doc{}, false, explainRight(err, writeRights+" for the key "+s.key)
	}
	value, written, err := readPublished(reply)
	if err != nil || value == "" { // the document is gone
		return Doc{}, false, err
	}
	doc, err = parseBeginning(value)
	if written {
		doc.Author, doc.Note, doc.Text = author, note, text
	}
	return doc, written, s.explain(err)
}

// Record writes into the audit that the rules have changed from one version to another, even after
// the context has ended. A change is written only once, even if several processes report it.
func (s *Store) Record(ctx context.Context, before Head, now Doc) error {
	e := audit.Entry{Act: audit.Rules, Author: now.Author, Note: now.Note, Before: before.String(), After: now.Head.String()}
	return explainRight(s.trail.AppendChange(context.WithoutCancel(ctx), e, e.Before, e.After), auditRights)
}

// clean returns a text that JSON can encode unchanged.
func clean(text string) string { return actor.Cut(strings.ToValidUTF8(text, "\uFFFD")) }

func readPublished(reply []any) (value string, written bool, err error) {
	if len(reply) == 2 {
		code, isCode := reply[0].(int64)
		value, isText := reply[1].(string)
		if isCode && isText {
			return value, code == 1, nil
		}
	}
	return "", false, &failure.Error{Class: failure.Unexpected, Err: errors.New("the reply of the script cannot be read")}
}

// parseBeginning reads a version whose text is cut off. The value may have only a head.
func parseBeginning(value string) (doc Doc, err error) {
	head, rest, err := parseHead(value)
	if err != nil || rest == "" {
		return Doc{Head: head}, err
	}
	by, _, err := parseAbout(rest)
	return Doc{Head: head, Author: by.Author, Note: by.Note}, err
}

// explain returns the error about a value that is not a document.
func (s *Store) explain(err error) error {
	if err == nil {
		return nil
	}
	return &failure.Error{Class: failure.Foreign, Err: fmt.Errorf(
		"the key %s does not hold a readable document: %w; it is left unchanged, and can be removed to publish anew", s.key, err)}
}

// explainRight adds the rights that are needed to an error about a missing right.
func explainRight(err error, rights string) error {
	var failed *failure.Error
	if !errors.As(err, &failed) || !redisstore.IsNoPermission(failed.Err) {
		return err
	}
	return &failure.Error{Class: failed.Class, Err: fmt.Errorf("the user of Redis needs the rights %s, as %s says: %w", rights, failure.RightsPage, failed.Err)}
}
