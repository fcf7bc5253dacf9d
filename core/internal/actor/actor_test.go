package actor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/actor"
)

func TestOf(t *testing.T) {
	if by, ok := actor.Of(context.Background()); ok {
		t.Errorf("%+v acts in a context that names nobody", by)
	}
	ctx := actor.With(context.Background(), "bob", "ticket 7")
	if by, ok := actor.Of(ctx); !ok || by != (actor.Actor{Author: "bob", Note: "ticket 7"}) {
		t.Errorf("%+v, %v", by, ok)
	}
	long := strings.Repeat("x", actor.MaxLen-1)
	for text, want := range map[string]string{
		long + "yz": long + "y", // cut to MaxLen
		long + "é":  long,       // a character is not split
		long + "y":  long + "y",
	} {
		by, _ := actor.Of(actor.With(context.Background(), text, text))
		if by.Author != want || by.Note != want {
			t.Errorf("%q and %q, want %q", by.Author, by.Note, want)
		}
	}
	if len(actor.Cut(strings.Repeat("\x80", 1000))) > actor.MaxLen {
		t.Error("a text that is not UTF-8 is not cut")
	}
}
