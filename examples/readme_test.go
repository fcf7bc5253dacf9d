package examples_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fragment surrounds a snippet that is not a whole program with the declarations that it needs.
const fragment = `package snippets

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/core/rulefile"
	"github.com/accesslimit/accesslimit/ginlimit"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

func snippet%d(ctx context.Context, router *gin.Engine, limiter *core.Limiter, pool *x509.CertPool,
	signIn, search gin.HandlerFunc, rdb redis.UniversalClient, functions rulefile.Functions, set *rulefile.Set, rules []core.Rule, text, commit string,
	mux *http.ServeMux, server *http.Server, isOperator func(name, password string) bool,
	tokens core.Counter, estimate, used int, model string, ask func(ctx context.Context, model string) (used int, err error)) {
	_, _, _, _, _ = ginlimit.New, tls.Config{}, netip.Addr{}, time.Now, rulefile.Load
	_, _, _, _, _ = log.Print, http.StatusOK, redis.Nil, new(atomic.Bool), strings.ToLower
	_, _, _, _, _ = fmt.Print, console.New, operate.New, nethttplimit.New, outgoing.New
	{
%s
	}
}
`

// TestPagesCompile builds the Go snippets of all pages of this module: whole programs one by one,
// and all others as one package, because linking each of them would cost a second.
func TestPagesCompile(t *testing.T) {
	pages, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob("../*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	below = append(below, "../core/console/README.md")
	programs, fragments := 0, map[string]string{}
	for _, page := range append(pages, below...) {
		if page == "../MIGRATING.md" {
			continue // internal/migrating has the libraries that it compares
		}
		for i, snippet := range snippets(t, page) {
			name := fmt.Sprintf("%s_%d.go", strings.NewReplacer("../", "", "/", "_", ".md", "").Replace(page), i)
			if isProgram(snippet) {
				programs++
				t.Run(name, func(t *testing.T) { compile(t, map[string]string{"main.go": snippet}) })
			} else {
				fragments[name] = fmt.Sprintf(fragment, len(fragments), used(snippet))
			}
		}
	}
	if programs == 0 || len(fragments) == 0 {
		t.Fatalf("found %d programs and %d fragments", programs, len(fragments))
	}
	compile(t, fragments)
}

func isProgram(snippet string) bool { return strings.HasPrefix(snippet, "package ") }

// snippets returns the Go code of a page.
func snippets(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, match := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(text, -1) {
		found = append(found, string(match[1]))
	}
	return found
}

// used adds a use of all that a snippet declares, because the compiler demands one.
func used(snippet string) string {
	for _, match := range regexp.MustCompile(`(?m)^([a-z]\w*(?:, [a-z]\w*)*) :?= `).FindAllStringSubmatch(snippet, -1) {
		for name := range strings.SplitSeq(match[1], ", ") {
			snippet += "_ = " + name + "\n"
		}
	}
	return snippet
}

// compile builds the files of a package that exists for the compiler only.
func compile(t *testing.T, files map[string]string) {
	t.Helper()
	build(t, files, os.DevNull, "./snippet")
}

// build builds packages below ./snippet, whose files exist for the compiler only.
func build(t *testing.T, files map[string]string, output string, packages ...string) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	replace, dir := map[string]string{}, t.TempDir()
	for name, source := range files {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(here, "snippet", name)] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", append([]string{"build", "-buildvcs=false", "-ldflags=-s -w", "-overlay", overlayFile, "-o", output}, packages...)...)
	if output, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
