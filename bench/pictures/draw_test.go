package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/bench/internal/paper/papertest"
)

// sizeLimit keeps a page with all pictures light.
const sizeLimit = 80_000

func TestPicture(t *testing.T) {
	clients := clients()
	graphs := make([]graph, len(clients))
	for i, c := range clients {
		graphs[i] = graphOf(asPlanned(c))
	}
	var picture bytes.Buffer
	a := algorithm{title: "Made & up", promise: "two < three", counted: "in flight"}
	if err := drawPicture(&picture, a, clients, graphs); err != nil {
		t.Fatal(err)
	}
	papertest.CheckLabels(t, "made up", picture.Bytes())
	words := wordsOf(t, picture.Bytes())
	for _, want := range []string{
		a.title, a.promise, "more than 200 in flight", "Bursty client", "Steady client", "calls per 100 ms", "30 s",
		"3000 of 4500 calls admitted",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("the picture does not say %q", want)
		}
	}
	if picture.Len() > sizeLimit {
		t.Errorf("the picture has %d bytes, more than %d", picture.Len(), sizeLimit)
	}
	if !strings.Contains(picture.String(), "sans-serif") {
		t.Error("the picture names no font that everybody has")
	}
}

// wordsOf returns the text of an SVG, which must be well-formed.
func wordsOf(t *testing.T, svg []byte) string {
	t.Helper()
	var words strings.Builder
	for decoder := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return words.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			words.Write(text)
		}
	}
}

// Every algorithm of the list has a picture in the repository that shows it as it is now.
func TestEveryAlgorithmHasItsPicture(t *testing.T) {
	for _, a := range algorithms(newLimiter(t)) {
		picture, err := os.ReadFile(filepath.Join("..", "algorithms", a.file+".svg"))
		if err != nil {
			t.Errorf("%v: run make pictures", err)
			continue
		}
		papertest.CheckLabels(t, a.file, picture)
		if words := wordsOf(t, picture); !strings.Contains(words, a.title) || !strings.Contains(words, a.promise) {
			t.Errorf("%s.svg is not of %s as it is now: run make pictures", a.file, a.title)
		}
	}
}
