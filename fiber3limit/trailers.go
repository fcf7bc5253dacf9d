package fiber3limit

import (
	"bytes"

	"github.com/gofiber/fiber/v3"
)

// withoutTrailers returns those values of a header that came before the body. Fasthttp keeps the
// trailers of a body in chunks behind them, under the same names, but not in the raw header.
func withoutTrailers(c fiber.Ctx, name string, values [][]byte) [][]byte {
	raw := c.Request().Header.RawHeaders()
	if len(values) == 0 || lines(raw, fiber.HeaderTransferEncoding, bytes.EqualFold) == 0 {
		return values
	}
	same := bytes.EqualFold
	if c.App().Config().DisableHeaderNormalizing {
		same = bytes.Equal
	}
	return values[:min(len(values), lines(raw, name, same))]
}

// lines returns how many lines of a raw header have this name.
func lines(raw []byte, name string, same func(a, b []byte) bool) (n int) {
	for line := range bytes.Lines(raw) {
		key, _, _ := bytes.Cut(line, []byte(":"))
		if same(bytes.TrimRight(key, " \t"), []byte(name)) {
			n++
		}
	}
	return n
}
