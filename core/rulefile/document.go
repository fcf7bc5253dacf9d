package rulefile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/actor"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/fleetrules"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Document is a document in Redis that holds the rules of a fleet of processes. [Document.Write]
// publishes a new version of it. Processes that called [Follow] use each version within about a
// second. Make one with [NewDocument]. It is safe for concurrent use.
type Document struct {
	client redis.UniversalClient
	store  *fleetrules.Store
	prefix string
	period time.Duration // between two looks at the version, on average

	unrecorded sync.Once // logs that a version could not be written into the audit
	unkept     sync.Once // logs that a version could not be kept
}

const (
	// documentTimeout bounds each command unless WithTimeout does. It is longer than that of a call,
	// because a document has up to a megabyte, and no call waits for it.
	documentTimeout = 2 * time.Second
	documentPeriod  = time.Second
)

// NewDocument returns the document whose keys begin with a prefix, which is "accesslimit" if it is
// empty, as in [core.Options]. It may differ from the prefix of the counters. [Document.Write]
// writes into the audit of this prefix. The client may be one of a single server, Sentinel, Cluster
// or Ring, and is not closed. NewDocument does not connect. Each later command takes at most two
// seconds, unless [Document.WithTimeout] says otherwise. The error is a *[core.RuleError].
func NewDocument(rdb redis.UniversalClient, prefix string) (*Document, error) {
	if prefix == "" {
		prefix = rediskey.DefaultPrefix
	}
	if client := reflect.ValueOf(rdb); !client.IsValid() || client.Kind() == reflect.Pointer && client.IsNil() {
		return nil, &core.RuleError{Field: "rdb", Value: nil, Why: "must be a client of Redis"}
	}
	if !rediskey.IsPrefix(prefix) {
		return nil, &core.RuleError{Field: "prefix", Value: prefix, Why: "must be at most 40 letters, digits and -._~:/@"}
	}
	return newDocumentOf(rdb, prefix, documentTimeout), nil
}

func newDocumentOf(client redis.UniversalClient, prefix string, timeout time.Duration) *Document {
	return &Document{client: client, store: fleetrules.NewStore(client, prefix, timeout), prefix: prefix, period: documentPeriod}
}

// WithTimeout returns the same document, each of whose commands takes at most this time: 1 ms to 1
// minute. The error is a *[core.RuleError].
func (d *Document) WithTimeout(timeout time.Duration) (*Document, error) {
	if timeout < time.Millisecond || timeout > time.Minute {
		return nil, &core.RuleError{Field: "timeout", Value: timeout, Why: "must be 1 ms to 1 minute"}
	}
	return newDocumentOf(d.client, d.prefix, timeout), nil
}

// Version is one version of a [Document].
type Version struct {
	// Number is 1 for the first version, and one more for each further version. It is 0 if there is
	// no document.
	Number int64
	// Author and Note are those of operate.WithActor, at most 255 bytes each.
	Author, Note string
	// Time is when the version was written, by Redis's clock.
	Time time.Time
	// Text is the text of the rules.
	Text string
}

// String returns a description of the version without its text, such as
//
//	version 7 (alice, 2026-11-22 16:00:00 UTC: "contract 17")
func (v Version) String() string {
	if v.Number == 0 {
		return "no version"
	}
	author, note := v.Author, ""
	if author == "" {
		author = "author unknown"
	}
	if v.Note != "" {
		note = ": " + quote(v.Note)
	}
	return fmt.Sprintf("version %d (%s, %s%s)", v.Number, author, v.Time.UTC().Format("2006-01-02 15:04:05 UTC"), note)
}

// versionOf returns a version as users see it.
func versionOf(doc fleetrules.Doc) Version {
	if doc.Number == 0 {
		return Version{}
	}
	return Version{doc.Number, doc.Author, doc.Note, doc.Time(), doc.Text}
}

// head returns the head that identifies the version.
func (v Version) head() fleetrules.Head {
	if v.Number == 0 {
		return fleetrules.Head{}
	}
	return fleetrules.Head{Number: v.Number, At: v.Time.UnixMicro()}
}

// ConflictError is the error of [Document.Write] if the current version is not the one that the
// author read, because somebody else published in the meantime or the document was lost.
type ConflictError struct {
	// Read is the version that the author read, and Found is the current version, both without
	// Text.
	Read, Found Version
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("rulefile: the document has %v now, but %v was read before: read it again, and write what should follow", e.Found, e.Read)
}

// Read returns the current version, or the zero Version if there is no document. Errors are those
// of the context, and a *[core.StoreError]. Its class is StoreForeignValue if the key holds
// something that this release cannot read.
func (d *Document) Read(ctx context.Context) (Version, error) {
	doc, err := d.store.Read(ctx)
	return versionOf(doc), storeError(err)
}

// Write publishes a text as the version that follows after, and returns it. after is the version
// that [Document.Read] returned, or the zero Version if there was no document. Author and note are
// those of operate.WithActor. To roll back, write the text of an older
// version, which [Document.History] has, as a new one.
//
// The text has the form of a rules file, in YAML or JSON. It is checked as by [Load], except for
// the names of functions, which only the services know. If anything is wrong, nothing is written,
// and the error is that of Load, with places in "document". If the current version is not after,
// the error is a *[ConflictError]. Further errors are those of Read. If an error does not tell
// whether the text was written, repeat the same call: it does not write twice. The version that is
// replaced is kept: see [Document.History].
func (d *Document) Write(ctx context.Context, text string, after Version) (Version, error) {
	if err := checkDocument(text); err != nil {
		return Version{}, err
	}
	if err := d.store.Keep(ctx); err != nil {
		d.unkept.Do(func() {
			slog.Warn("accesslimit: the present rules could not be kept for a rollback", slog.Any("error", err))
		})
	}
	by, _ := actor.Of(ctx)
	doc, written, err := d.store.Publish(ctx, after.head(), by.Author, by.Note, text)
	switch {
	case err != nil:
		return Version{}, storeError(err)
	case !written:
		after.Text = ""
		return Version{}, &ConflictError{after, versionOf(doc)}
	}
	if err := d.store.Record(ctx, after.head(), doc); err != nil {
		d.unrecorded.Do(func() {
			slog.Error("accesslimit: rules were published, but this could not be written into the audit", slog.Any("error", err))
		})
	}
	return versionOf(doc), nil
}

// History returns the current version and the last 20 that [Document.Write] replaced, the latest first.
// A version that a release without History replaced is missing. The history has no end but that number,
// and is lost with the document. Errors are those of Read.
func (d *Document) History(ctx context.Context) (versions []Version, err error) {
	now, err := d.store.Read(ctx)
	if err != nil {
		return nil, storeError(err)
	}
	kept, err := d.store.Kept(ctx)
	if err != nil {
		return nil, storeError(err)
	}
	if now.Number > 0 {
		versions = append(versions, versionOf(now))
	}
	for _, doc := range kept {
		if doc.Head != now.Head {
			versions = append(versions, versionOf(doc))
		}
	}
	return versions, nil
}

// storeError returns an error of the store as core returns it.
func storeError(err error) error {
	var failed *failure.Error
	if !errors.As(err, &failed) {
		return err
	}
	return &core.StoreError{Class: core.StoreErrorClass(failed.Class), Err: failed}
}
