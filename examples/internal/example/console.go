package example

import (
	"crypto/subtle"
	"net/http"
	"os"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
)

// pages are the operator's pages that end before the service does.
var pages []*console.Handler

// Console returns the operator's page, for whoever has OPERATOR_TOKEN as the password. The name is
// the author of acts in the audit. It finds nothing if OPERATOR_TOKEN is not set.
func Console(limiter *core.Limiter) http.Handler {
	token := os.Getenv("OPERATOR_TOKEN")
	if token == "" {
		return http.NotFoundHandler()
	}
	page, err := console.New(limiter, console.Options{
		Challenge: `Basic realm="limits"`, // browsers ask for a name and a password
		Authorize: func(r *http.Request) (console.Identity, error) {
			name, password, _ := r.BasicAuth()
			if subtle.ConstantTimeCompare([]byte(password), []byte(token)) == 0 {
				return console.Identity{}, nil // a stranger
			}
			return console.Identity{Name: name, Role: console.Operator}, nil
		},
		ClientIP: clientIP(),
	})
	if err != nil {
		panic(err) // a mistake in the options above
	}
	pages = append(pages, page)
	return page
}

// closePages ends the streams of live figures. A server that shuts down would wait for them.
func closePages() {
	for _, page := range pages {
		page.Close()
	}
}
