package fiberlimit_test

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/gofiber/fiber/v2"

	"github.com/accesslimit/accesslimit/core/adaptertest"
)

// endings are fiber's own ways for a call to end.
var endings = []adaptertest.Ending{
	ending("an Error", 404, func(*fiber.Ctx) error { return fiber.NewError(404) }),
	ending("one of fiber's errors", 401, func(*fiber.Ctx) error { return fiber.ErrUnauthorized }),
	ending("a wrapped Error", 422, func(*fiber.Ctx) error { return fmt.Errorf("asked: %w", fiber.ErrUnprocessableEntity) }),
	ending("a plain error", 500, func(*fiber.Ctx) error { return errors.New("broken") }),
	ending("a reply, then an error", 500, func(c *fiber.Ctx) error {
		_ = c.SendString("half of it")
		return errors.New("broken")
	}),
	ending("a refusal, then another error", 409, func(c *fiber.Ctx) error {
		_ = c.SendStatus(403)
		return fiber.ErrConflict
	}),
	ending("Status alone", 418, func(c *fiber.Ctx) error { c.Status(418); return nil }),
	ending("SendStatus", 204, func(c *fiber.Ctx) error { return c.SendStatus(204) }),
	ending("JSON", 400, func(c *fiber.Ctx) error { return c.Status(400).JSON(fiber.Map{"field": "missing"}) }),
	ending("Redirect", 302, func(c *fiber.Ctx) error { return c.Redirect("/elsewhere") }),
	ending("a body, then a status", 500, func(c *fiber.Ctx) error {
		_ = c.SendString("all of it is sent later")
		return c.SendStatus(500)
	}),
	ending("a stream", 200, func(c *fiber.Ctx) error {
		// fasthttp would send the end of the body to a HEAD, too.
		if c.Method() != fiber.MethodHead {
			c.Context().SetBodyStreamWriter(func(w *bufio.Writer) { _, _ = w.WriteString("later") })
		}
		return nil
	}),
	{Name: "a panic after a reply", Outcome: 500, Handle: func(h adaptertest.Handling) {
		h.Text("not sent yet")
		panic("a handler's own fault")
	}},
}

func ending(name string, status int, handle fiber.Handler) adaptertest.Ending {
	return adaptertest.Ending{Name: name, Outcome: status, Handle: func(h adaptertest.Handling) {
		h.(*handling).err = handle(h.(*handling).c)
	}}
}
