package fleetrules

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// value returns a document as the script writes it.
func value(head Head, author, note, text string) string {
	rest, sum := body(clean(author), clean(note), text)
	return fmt.Sprintf("rd1 %d %d %s\n", head.Number, head.At, sum) + rest
}

// FuzzParse looks for a value that panics, or that is read in two ways.
func FuzzParse(f *testing.F) {
	good := value(Head{Number: 7, At: 1795209600123456}, "alice", "contract 17", "version: 1\n")
	f.Add(good, "alice", "")
	f.Add(good+"#", "\xff\x00\"\\\n", strings.Repeat("é", 200))
	f.Add(strings.Replace(good, "rd1", "rd2", 1), "", "\u2028")
	f.Add("rd1 1 1 \n{}\n", "<a>", strings.Repeat("\x01", 300))
	f.Fuzz(func(t *testing.T, found, author, note string) {
		doc, err := parse(found)
		head, _, errHead := parseHead(found[:min(len(found), maxHead)])
		if err == nil && (errHead != nil || head != doc.Head) {
			t.Errorf("the head is %+v, %v, and the document's is %+v", head, errHead, doc.Head)
		}
		if errHead == nil && (head.Number < 1 || head.At < 1) {
			t.Errorf("the head is %+v", head)
		}
		beginning, errBeginning := parseBeginning(found[:min(len(found), 4096)])
		if err == nil && (errBeginning != nil || beginning.Author != doc.Author || beginning.Head != doc.Head) {
			t.Errorf("it begins with %+v, %v, and is %+v", beginning, errBeginning, doc)
		}
		for _, err := range []error{err, errHead, errBeginning} {
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		}
		written, err := parse(value(Head{Number: 1, At: 2}, author, note, found))
		if err != nil || written.Text != found || written.Author != clean(author) || written.Note != clean(note) || !utf8.ValidString(written.Note) {
			t.Errorf("%+v is not read as it was written: %v", written, err)
		}
	})
}

// A process takes a version that was written later, whatever its number is, and no other.
func TestFollows(t *testing.T) {
	held := Head{Number: 7, At: 1000, Sum: "a"}
	for next, want := range map[Head]bool{
		held:           false,
		{8, 2000, "b"}: true,
		{8, 900, "b"}:  false, // from before the document was lost, and written again
		{6, 900, "b"}:  false, // from a replica that was behind, or a backup
		{1, 3000, "b"}: true,  // written anew, after the document was lost
		{7, 3000, "b"}: true,  // written after version 7 was lost
		{7, 1000, "b"}: false,
		{}:             false,
	} {
		if next.Follows(held) != want {
			t.Errorf("%+v follows %+v: %v", next, held, !want)
		}
	}
}
