package fleetrules

import (
	"cmp"
	"context"
	_ "embed"
	"slices"
	"strconv"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// MostKept is how many replaced versions are kept.
const MostKept = 20

// keptAtOnce is how many of them one command reads.
const keptAtOnce = 4

// keepRights are the rights for the history, as failure.RightsPage lists them.
const keepRights = "+lindex +lrange +ltrim +rpush"

//go:embed keep.lua
var keepText string

var keep = algorithm.NewScript(keepText)

// historyKey returns the key of the list of replaced versions.
func historyKey(prefix string) string { return prefix + ":{%rules}:rh1" }

// Keep keeps the current version in the list of those that were replaced, if there is one.
func (s *Store) Keep(ctx context.Context) error {
	err := s.redis.Operate(ctx, func(ctx context.Context) error {
		_, err := s.redis.Script(ctx, keep, []string{s.key, s.history}, strconv.Itoa(MostKept))
		return err
	})
	return explainRight(err, keepRights+" for the key "+s.history)
}

// Kept returns the versions that were replaced, the latest first. Values that are not documents are left
// out.
func (s *Store) Kept(ctx context.Context) (docs []Doc, err error) {
	for from := 0; from < MostKept; from += keptAtOnce {
		values, err := s.kept(ctx, from)
		if err != nil {
			return nil, explainRight(err, "+lrange for the key "+s.history)
		}
		for _, value := range values {
			text, _ := value.(string)
			doc, err := parse(text)
			if err == nil && !slices.ContainsFunc(docs, func(d Doc) bool { return d.Head == doc.Head }) {
				docs = append(docs, doc)
			}
		}
		if len(values) < keptAtOnce {
			break
		}
	}
	slices.SortStableFunc(docs, func(a, b Doc) int { return cmp.Compare(b.At, a.At) })
	return docs, nil
}

// kept returns a part of the list.
func (s *Store) kept(ctx context.Context, from int) (values []any, err error) {
	err = s.redis.Operate(ctx, func(ctx context.Context) error {
		reply, err := s.redis.Command(ctx, "lrange", s.history, from, from+keptAtOnce-1)
		values, _ = reply.([]any)
		return err
	})
	return values, err
}
