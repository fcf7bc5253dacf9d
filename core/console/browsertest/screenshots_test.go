package browsertest

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

const (
	screenshots   = "../screenshots"
	maxScreenshot = 100_000 // bytes
)

// The documentation shows each page in light and dark, as this test saw it last.
func TestScreenshots(t *testing.T) {
	if err := os.MkdirAll(screenshots, 0o755); err != nil {
		t.Fatal(err)
	}
	b := newBusy(t)
	for _, path := range b.pages("mallory") { // of subject and explain, only the last, which are about mallory, remain
		for _, scheme := range []string{"light", "dark"} {
			b.prefer(scheme)
			b.open(path)
			shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			saveScreenshot(t, shotName(path)+"-"+scheme+".png", shot)
		}
	}
}

// newBusy returns a tab with the page of a service that has been under load for half a minute, and
// on which an operator has acted.
func newBusy(t testing.TB) *tab {
	t.Helper()
	f := startFleet(t, 3, "rules.yaml")
	for user, pause := range map[string]time.Duration{"mallory": 100, "trudy": 700, "alice": 2500, "bob": 3000, "carol": 1800, "dave": 900} {
		f.load("/orders", user, pause*time.Millisecond)
	}
	f.load("/search", "bob", 800*time.Millisecond)
	f.load("/exports", "carol", 4*time.Second)
	f.act("override", "orders", "user:dave", "pays for more, contract 17", map[string]string{"limits": "500/h", "for": "7d"})
	b := newTab(t, f.page(0), "olga")
	b.size(1280, 800)
	b.open("")
	b.do("wait for the chart", chromedp.Poll[chromedp.Void](
		`document.querySelector("polyline.allowed")?.points.length >= 15`, chromedp.WithPollingMutation(), chromedp.WithPollingTimeout(patience)))
	f.act("ban", "orders", "user:trudy", "scrapes the catalogue, ticket 4711", map[string]string{"for": "24h"})
	f.act("ban", "orders", "user:eve", "stolen card, ticket 4689", map[string]string{"for": "7d"})
	f.act("ban", "orders", "user:bob", "the wrong bob", map[string]string{"for": "1h"})
	f.act("unban", "orders", "user:bob", "was the wrong bob", nil)
	b.openOffenders("mallory")
	return b
}

// shotName returns the name of a page's pictures.
func shotName(path string) string {
	name, _, _ := strings.Cut(path, "?")
	return cmp.Or(strings.Trim(name, "./"), "now")
}

// saveScreenshot writes a picture with few colours, which takes a quarter of the space.
func saveScreenshot(t testing.TB, name string, shot []byte) {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	small := image.NewPaletted(full.Bounds(), commonColors(full))
	draw.Draw(small, small.Bounds(), full, full.Bounds().Min, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small); err != nil {
		t.Fatal(err)
	}
	if out.Len() > maxScreenshot {
		t.Errorf("%s has %d bytes", name, out.Len())
	}
	if err := os.WriteFile(filepath.Join(screenshots, name), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// commonColors returns the colours that a picture has most of.
func commonColors(picture image.Image) color.Palette {
	const most = 64
	counts := make(map[color.Color]int)
	for y := picture.Bounds().Min.Y; y < picture.Bounds().Max.Y; y++ {
		for x := picture.Bounds().Min.X; x < picture.Bounds().Max.X; x++ {
			counts[picture.At(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] })
	return colors[:min(most, len(colors))]
}
