package fiberlimit_test

import (
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/accesslimit/accesslimit/core/limittest"
)

// FuzzPaths tries paths on fiber's router as it is, and as its options make it route by other forms
// of the path.
func FuzzPaths(f *testing.F) {
	limittest.FuzzPaths(f,
		limittest.Adapter{Serve: serve(fiber.Config{})},
		limittest.Adapter{Serve: serve(fiber.Config{UnescapePath: true})},
		limittest.Adapter{Serve: serve(fiber.Config{StrictRouting: true})},
		limittest.Adapter{Serve: serve(fiber.Config{CaseSensitive: true})},
		limittest.Adapter{Serve: serve(fiber.Config{StrictRouting: true, CaseSensitive: true})},
		limittest.Adapter{Serve: serve(fiber.Config{StrictRouting: true, CaseSensitive: true, UnescapePath: true})},
	)
}
