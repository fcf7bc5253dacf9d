package fiberlimit_test

import (
	"errors"
	"log/slog"
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/fiberlimit"
)

// TestNamesAreCopied checks that the core keeps no name which fiber lends for one call only. The
// next call on the connection overwrites it, and the limits that the name stands for would be
// forgotten.
func TestNamesAreCopied(t *testing.T) {
	limiter, err := core.New(core.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/:name", func(c *fiber.Ctx) error {
		if check, err := limiter.Check(core.Rule{Name: c.Params("name"), Seconds: 600, MaxCount: 5}); err == nil && fiberlimit.Allow(c, check, "somebody") {
			return c.SendString("ok")
		}
		return nil
	})
	l := fasthttputil.NewInmemoryListener()
	go func() { _ = app.Listener(l) }()
	defer func() { _ = l.Close() }()
	conn, err := l.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, name := range []string{"first", "other"} {
		request, _ := http.NewRequest("GET", "http://service.test/"+name, nil)
		if err := request.Write(conn); err != nil {
			t.Fatal(err)
		}
		reply := make([]byte, 4096)
		if _, err := conn.Read(reply); err != nil {
			t.Fatal(err)
		}
	}
	var wrong *core.RuleError
	for _, name := range []string{"first", "other"} {
		if _, err := limiter.Guard(core.Rule{Name: name, Seconds: 600, MaxCount: 6}); !errors.As(err, &wrong) {
			t.Errorf("%s no longer stands for 5 calls: %v", name, err)
		}
	}
}
