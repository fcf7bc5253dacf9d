package fiberlimit_test

import (
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/accesslimit/accesslimit/core/adaptertest"
)

// FuzzPaths tries paths on fiber's router as it is, and as its options make it route by other forms
// of the path.
func FuzzPaths(f *testing.F) {
	adaptertest.FuzzPaths(f,
		adaptertest.Adapter{Serve: serve(fiber.Config{})},
		adaptertest.Adapter{Serve: serve(fiber.Config{UnescapePath: true})},
		adaptertest.Adapter{Serve: serve(fiber.Config{StrictRouting: true})},
		adaptertest.Adapter{Serve: serve(fiber.Config{CaseSensitive: true})},
		adaptertest.Adapter{Serve: serve(fiber.Config{StrictRouting: true, CaseSensitive: true})},
		adaptertest.Adapter{Serve: serve(fiber.Config{StrictRouting: true, CaseSensitive: true, UnescapePath: true})},
	)
}
