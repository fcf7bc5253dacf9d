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

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// sizeLimit keeps a page with all pictures light.
const sizeLimit = 80_000

func TestPicture(t *testing.T) {
	clients := clients()
	graphs := make([]graph, len(clients))
	for i, c := range clients {
		graphs[i] = graphOf(asPlanned(c))
	}
	path := filepath.Join(t.TempDir(), "picture.svg")
	a := algorithm{title: "Made & up", promise: "two < three", counted: "in flight"}
	if err := drawPicture(path, a, clients, graphs); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	words := wordsOf(t, picture)
	for _, want := range []string{
		a.title, a.promise, "admitted calls in flight", "Bursty client", "Steady client", "30 s", "3000 of 4500 calls admitted",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("the picture does not say %q", want)
		}
	}
	if len(picture) > sizeLimit {
		t.Errorf("the picture has %d bytes, more than %d", len(picture), sizeLimit)
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
	for _, a := range algorithms(limitertest.New(t, core.Options{})) {
		picture, err := os.ReadFile(filepath.Join("..", "algorithms", a.file+".svg"))
		if err != nil {
			t.Errorf("%v: run make pictures", err)
			continue
		}
		if words := wordsOf(t, picture); !strings.Contains(words, a.title) || !strings.Contains(words, a.promise) {
			t.Errorf("%s.svg is not of %s as it is now: run make pictures", a.file, a.title)
		}
	}
}
