package algorithm

import (
	"strings"
	"unicode/utf8"
)

// maxNote bounds a note, because Redis keeps up to 10,000 of them for a subject.
const maxNote = 256

// CutNote returns the part of a note that is kept, as valid UTF-8. It is a copy, because a
// framework may have lent the text for one call. Replacing invalid bytes can make it longer, so it
// is cut again.
func CutNote(note string) string {
	return strings.Clone(wholeCharacters(strings.ToValidUTF8(wholeCharacters(note), "\uFFFD")))
}

// wholeCharacters returns the part of a note that is kept, in whole characters.
func wholeCharacters(note string) string {
	if len(note) <= maxNote {
		return note
	}
	end := maxNote
	for end > maxNote-utf8.UTFMax && !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end]
}
