package migrating

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	_ "github.com/go-chi/httprate"
	_ "github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	_ "github.com/ulule/limiter/v3/drivers/store/redis"
	_ "golang.org/x/time/rate"
)

// snippet makes a snippet a file of a package. Its arguments are a number, the imports and a use of
// each, the name of a parameter, and the snippet itself.
const snippet = `package made

import (
	"context"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
%[2]s
)

var _, _, _, _, _ = log.Fatal, net.SplitHostPort, http.Handle, time.Now, []any{%[3]s}

func snippet%[1]d(ctx context.Context, rdb redis.UniversalClient, handler http.Handler, %[4]s *core.Limiter, tooMany func(time.Duration) error) error {
	{
%[5]s
	}
	return nil
}
`

// library is what snippets need that use one library.
type library struct{ imports, uses, limiter string }

// The snippets of a section show one thing: first with the other library, then with this one.
var (
	theirs = library{`
	"github.com/go-chi/httprate"
	"github.com/go-redis/redis_rate/v10"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	redisstore "github.com/ulule/limiter/v3/drivers/store/redis"
	"golang.org/x/time/rate"
`, "httprate.LimitBy, redis_rate.NewLimiter, limiter.New, stdlib.NewMiddleware, redisstore.NewStore, rate.NewLimiter", "_"}
	ours = library{`
	"github.com/accesslimit/accesslimit/nethttplimit"
	redis_rate "github.com/accesslimit/accesslimit/redisrate"
`, "nethttplimit.New, redis_rate.NewLimiter", "limiter"}
)

// file returns a snippet that uses the library, as a file.
func (l library) file(number int, text []byte) string {
	return fmt.Sprintf(snippet, number, l.imports, l.uses, l.limiter, text)
}

// Every snippet of MIGRATING.md compiles. The first, on redis_rate, does so with redisrate too.
func TestSnippetsCompile(t *testing.T) {
	page, err := os.ReadFile("../../MIGRATING.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(page, -1)
	if len(found) != 8 {
		t.Fatalf("there are %d snippets, want two for each library", len(found))
	}
	files := map[string]string{"drop_in.go": ours.file(len(found), found[0][1])}
	for i, match := range found {
		files[fmt.Sprintf("snippet_%d.go", i)] = []library{theirs, ours}[i%2].file(i, match[1])
	}
	build(t, files, "build", "-o", os.DevNull)
}
