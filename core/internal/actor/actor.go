// Package actor names the operator who acts, for the log, the audit stream, overrides and rules.
package actor

import (
	"context"
	"strings"
	"unicode/utf8"
)

// MaxLen is the length of the longest author or note, in bytes. [With] cuts off what goes beyond.
const MaxLen = 255

// Actor is an operator who acts, with a note that gives the reason.
type Actor struct{ Author, Note string }

type key struct{}

// With returns a context that names the operator who acts. It keeps copies of both texts.
func With(ctx context.Context, author, note string) context.Context {
	return context.WithValue(ctx, key{}, Actor{Cut(author), Cut(note)})
}

// Of returns the operator that a context names, and whether it names one.
func Of(ctx context.Context) (by Actor, ok bool) {
	by, ok = ctx.Value(key{}).(Actor)
	return by, ok
}

// Cut returns a copy of a text, shortened to MaxLen bytes. It splits no character.
func Cut(text string) string {
	end := min(len(text), MaxLen)
	for end < len(text) && end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.Clone(text[:end])
}
