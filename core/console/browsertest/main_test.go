// Package browsertest tests the operator's page in a real browser, against services that are real
// processes on a real Redis, and makes the screenshots of the documentation anew.
package browsertest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

var (
	chromium context.Context // of the one browser that all tests use
	service  string          // the program of the services
)

func TestMain(m *testing.M) { leakcheck.Main(prepared{m}) }

// prepared runs tests with a browser and the program of the services.
type prepared struct{ *testing.M }

func (m prepared) Run() (status int) {
	dir, err := os.MkdirTemp("", "browsertest")
	if err != nil {
		return fail(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	service = filepath.Join(dir, "service")
	if out, err := exec.Command("go", "build", "-o", service, "./service").CombinedOutput(); err != nil {
		return fail(fmt.Errorf("%w: %s", err, out))
	}
	stop, err := startBrowser()
	if err != nil {
		return fail(err)
	}
	defer stop()
	return m.M.Run()
}

func fail(err error) (status int) {
	fmt.Fprintln(os.Stderr, "browsertest:", err)
	return 1
}

// startBrowser starts Chromium with an empty profile. Only loopback addresses and the name that the
// tests use can be looked up, and it makes no requests of its own.
func startBrowser() (stop func(), err error) {
	program := cmp.Or(os.Getenv("ACCESSLIMIT_CHROMIUM"), "chromium")
	if _, err := exec.LookPath(program); err != nil {
		return nil, fmt.Errorf(`the program %s is missing: "make chromium" in the accesslimit repository installs it`, program)
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(program)}
	for _, name := range []string{
		"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "no-default-browser-check",
		"disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage", "hide-scrollbars",
		"force-prefers-reduced-motion", // a page that scrolls smoothly moves away under a click
	} {
		options = append(options, chromedp.Flag(name, true))
	}
	options = append(options,
		chromedp.Flag("host-resolver-rules", "MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("force-color-profile", "srgb"))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	stop = func() {
		cancel()
		end()
	}
	if err := chromedp.Do(ctx); err != nil {
		stop()
		return nil, fmt.Errorf("chromium does not start: %w", err)
	}
	chromium = ctx
	return stop, nil
}
