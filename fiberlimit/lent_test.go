package fiberlimit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/fiberlimit"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// lentApp keeps what its queries say, in each way.
func lentApp(limiter *core.Limiter) *fiber.App {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Use(func(c *fiber.Ctx) error {
		c.Locals("subject", c.Query("subject"))
		c.Locals("zone", c.Query("zone"))
		return c.Next()
	})
	app.Get("/direct", func(c *fiber.Ctx) error {
		_, err := limiter.MustCounter(c.Query("name"), core.PerCalendarDay(5, c.Query("zone"))).Allow(context.Background(), c.Query("subject"))
		return err
	})
	app.Get("/inside", func(c *fiber.Ctx) error {
		check, err := limiter.Check(core.Rule{Name: c.Query("name"), Limit: core.PerCalendarDay(5, c.Query("zone"))})
		if err == nil {
			fiberlimit.Allow(c, check, c.Query("subject"))
		}
		return err
	})
	app.Get("/plan", fiberlimit.New(limiter, core.Rule{
		Name: "plan", Seconds: 60, Key: core.ByValue("subject"),
		LimitFor: func(r core.Request) (core.Limit, error) { return core.PerCalendarDay(5, r.Value("zone").(string)), nil },
	}), func(c *fiber.Ctx) error { return nil })
	return app
}

// fiber overwrites the strings of a request with those of the next one on the connection. The core
// keeps none of them.
func TestNothingLentByFiberIsKept(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	app := lentApp(limiter)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = app.Listener(l) }()
	defer l.Close()

	client := http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	// All zones have the same length, so that they lie in the same bytes.
	for path, zones := range map[string][]string{
		"direct": {"Asia/Tokyo", "Asia/Dubai", "Asia/Kabul"},
		"inside": {"Asia/Seoul", "Asia/Dhaka", "Asia/Qatar"},
		"plan":   {"Asia/Macau", "Asia/Amman", "Asia/Aqtau"},
	} {
		for i, zone := range zones {
			query := fmt.Sprintf("?name=%s%d&subject=user:%d&zone=%s", path, i, i, zone)
			response, err := client.Get("http://" + l.Addr().String() + "/" + path + query)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Fatalf("%s: status %d", query, response.StatusCode)
			}
		}
		for i, zone := range zones {
			name, subject := fmt.Sprint(path, i), fmt.Sprint("user:", i)
			if path == "plan" {
				name, subject = "plan", "value:"+subject
			}
			d, err := limiter.MustCounter(name, core.PerCalendarDay(5, zone)).Peek(context.Background(), subject)
			if err != nil || d.Remaining != 4 {
				t.Errorf("%q of %q in %s: %d left, %v; want 4", name, subject, zone, d.Remaining, err)
			}
			if _, err := limiter.Guard(core.Rule{Name: name, Limit: core.PerCalendarDay(6, zone)}); path == "inside" && !errors.As(err, new(*core.RuleError)) {
				t.Errorf("%q no longer stands for 5 calls: %v", name, err)
			}
		}
	}
}
