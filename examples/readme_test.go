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

// fragment is what surrounds a snippet of the README that is no whole program: what it may take for granted.
const fragment = `package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/ginlimit"
)

func main() {}

func snippet(ctx context.Context, router *gin.Engine, limiter *core.Limiter, pool *x509.CertPool, login, search gin.HandlerFunc) {
	_, _ = ginlimit.New, tls.Config{}
	_, _, _, _, _ = log.Print, http.StatusOK, redis.Nil, new(atomic.Bool), strings.ToLower
	{
%s
	}
}
`

// TestReadmeCompiles builds every Go snippet of the README as a program of this module.
func TestReadmeCompiles(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(snippets) == 0 {
		t.Fatal("there are no snippets")
	}
	for i, match := range snippets {
		source := string(match[1])
		if !strings.HasPrefix(source, "package ") {
			source = fmt.Sprintf(fragment, declared(source))
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) { compile(t, source) })
	}
}

// declared uses what a snippet declares, so that the compiler does not mind.
func declared(snippet string) string {
	for _, match := range regexp.MustCompile(`(?m)^(\w+), err := `).FindAllStringSubmatch(snippet, -1) {
		snippet += fmt.Sprintf("_, _ = %s, err\n", match[1])
	}
	return snippet
}

// compile builds a source file in a folder of this module that exists for the compiler only.
func compile(t *testing.T, source string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, "snippet", "main.go"): file}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-buildvcs=false", "-overlay", overlayFile, "-o", os.DevNull, "./snippet")
	if output, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, output, source)
	}
}
