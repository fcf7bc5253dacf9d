package nethttplimit_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// writings are ways to write a body. Each reports the results of its writer's methods.
var writings = map[string]func(w http.ResponseWriter, record func(...any)){
	"at once": func(w http.ResponseWriter, record func(...any)) { declare(w, 9000); record(w.Write(long[:9000])) },
	"a text": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 9000)
		record(io.WriteString(w, text[:9000]))
	},
	"one byte":          func(w http.ResponseWriter, record func(...any)) { declare(w, 1); record(w.Write(long[:1])) },
	"nothing":           func(w http.ResponseWriter, record func(...any)) { declare(w, 0); record(w.Write(nil)) },
	"byte by byte":      func(w http.ResponseWriter, record func(...any)) { declare(w, 3); each(w, 3, record) },
	"one byte too many": func(w http.ResponseWriter, record func(...any)) { declare(w, 3); each(w, 4, record) },
	"too much at once":  func(w http.ResponseWriter, record func(...any)) { declare(w, 5000); record(w.Write(long[:5001])) },
	"too much in the end": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 5001)
		record(w.Write(long[:5000]))
		record(w.Write(long[:2]))
	},
	"no length": func(w http.ResponseWriter, record func(...any)) { record(w.Write(long[:5000])) },
	"a wrong length": func(w http.ResponseWriter, record func(...any)) {
		w.Header().Set("Content-Length", "x")
		record(w.Write(long[:5000]))
	},
	"a status before": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 7)
		w.WriteHeader(201)
		record(w.Write(long[:7]))
	},
	"a length after the status": func(w http.ResponseWriter, record func(...any)) {
		w.WriteHeader(200)
		declare(w, 5) // too late, so it says nothing
		record(w.Write(long[:5]))
		record(w.Write(long[:5000]))
	},
	"a length after a flush": func(w http.ResponseWriter, record func(...any)) {
		record(http.NewResponseController(w).Flush())
		declare(w, 5)
		record(w.Write(long[:5]))
		record(w.Write(long[:5000]))
	},
	"a length after early hints": func(w http.ResponseWriter, record func(...any)) {
		w.WriteHeader(103)
		declare(w, 5)
		record(w.Write(long[:5]))
		record(w.Write(long[:5000]))
	},
	"a status after": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 1)
		record(w.Write(long[:1]))
		w.WriteHeader(500)
	},
	"304": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 7)
		w.WriteHeader(304)
		record(w.Write(long[:7]))
	},
	"a flush in the end": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 7)
		record(w.Write(long[:7]))
		record(http.NewResponseController(w).Flush())
		record(w.Write(long[:1]))
	},
	"read from a text": func(w http.ResponseWriter, record func(...any)) { declare(w, 9000); record(readFrom(w, 9000)) },
	"read in two halves": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 9000)
		record(readFrom(w, 4000))
		record(readFrom(w, 5000))
	},
	"read all but one byte": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 9000)
		record(readFrom(w, 8999))
		record(readFrom(w, 1))
	},
	"read one byte":         func(w http.ResponseWriter, record func(...any)) { declare(w, 1); record(readFrom(w, 1)) },
	"read without a length": func(w http.ResponseWriter, record func(...any)) { record(readFrom(w, 9000)) },
	"read what breaks off": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 4000)
		n, err := io.Copy(w, io.MultiReader(bytes.NewReader(long[:3990]), iotest.ErrReader(io.ErrUnexpectedEOF)))
		record(n, errors.Is(err, io.ErrUnexpectedEOF)) // its text names the connection
		record(w.Write(long[:10]))
	},
	"a limited reader": func(w http.ResponseWriter, record func(...any)) {
		from := &io.LimitedReader{R: bytes.NewReader(long), N: 9000}
		declare(w, 9000)
		record(w.(io.ReaderFrom).ReadFrom(from))
		record(from.N)
	},
	"a file": func(w http.ResponseWriter, record func(...any)) {
		http.ServeFile(w, httptest.NewRequest("GET", "/", nil), "writer_test.go")
	},
	"part of a file": func(w http.ResponseWriter, record func(...any)) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Range", "bytes=100-5099")
		http.ServeFile(w, r, "writer_test.go")
	},
}

func declare(w http.ResponseWriter, length int) {
	w.Header().Set("Content-Length", strconv.Itoa(length))
}

func each(w http.ResponseWriter, bytes int, record func(...any)) {
	for i := range bytes {
		record(w.Write(long[i : i+1]))
	}
}

// readFrom makes the writer read from a source that has no WriteTo.
func readFrom(w http.ResponseWriter, bytes int64) (int64, error) {
	return w.(io.ReaderFrom).ReadFrom(iotest.OneByteReader(io.LimitReader(strings.NewReader(text), bytes)))
}

// TestWatchedResponsesAreTheSame checks that neither the client nor the handler can tell a watched
// response from the server's own.
func TestWatchedResponsesAreTheSame(t *testing.T) {
	limited := nethttplimit.New(limitertest.New(t, core.Options{}), counted, slots)
	for name, write := range writings {
		for _, method := range []string{"GET", "HEAD"} {
			got := make(map[bool]string)
			for _, watched := range []bool{false, true} {
				said := make(chan string, 20)
				var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					defer close(said) // the client may have everything before the handler returns
					write(w, func(values ...any) { said <- fmt.Sprint(values...) })
				})
				if watched {
					handler = limited(handler)
				}
				got[watched] = exchange(t, method, handler) + "\n"
				for text := range said {
					got[watched] += text + "; "
				}
			}
			if got[true] != got[false] {
				t.Errorf("%s %s: %s\nwant %s", method, name, got[true], got[false])
			}
		}
	}
}

// exchange returns all that the server sends to a client, without the headers of a limiter and the
// date.
func exchange(t *testing.T, method string, handler http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	bounded.Cleanup(t, server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s / HTTP/1.1\r\nHost: service.test\r\nConnection: close\r\n\r\n", method)
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(Ratelimit(-Policy)?|Date|Last-Modified): [^\n]*\n`).ReplaceAllString(string(all), "")
}

// TestLastByteIsHeldBack checks that a body arrives as it is written, except for the last byte of
// one whose length was declared. That byte arrives when the handler has returned, or flushes.
func TestLastByteIsHeldBack(t *testing.T) {
	leave := make(chan bool)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		declare(w, len(long))
		_, _ = w.Write(long)
		for flush := range leave {
			if !flush {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	})
	limited := nethttplimit.New(limitertest.New(t, core.Options{}), slots)(handler)
	mux := http.NewServeMux()
	mux.Handle("/", limited)
	mux.Handle("/other", http.NotFoundHandler())
	mux.HandleFunc("/unwrapping", func(w http.ResponseWriter, r *http.Request) { limited.ServeHTTP(unwrapping{w}, r) })
	server := httptest.NewServer(mux)
	bounded.Cleanup(t, server.Close)
	for _, call := range []struct {
		path  string
		flush bool
	}{{"/", false}, {"/", true}, {"/unwrapping", false}, {"/unwrapping", true}} {
		response, err := http.Get(server.URL + call.path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(response.Body, make([]byte, len(long)-1)); err != nil {
			t.Fatalf("all but the last byte: %v", err)
		}
		end := make(chan error, 1)
		go func() {
			_, err := io.ReadFull(response.Body, make([]byte, 1))
			end <- err
		}()
		if other, err := http.Get(server.URL + "/other"); err != nil {
			t.Fatal(err)
		} else {
			_ = other.Body.Close()
		}
		select {
		case err := <-end:
			t.Errorf("the end came before the handler returned: %v", err)
		default: // it had the time of the other call
		}
		leave <- call.flush
		if err := <-end; err != nil {
			t.Errorf("the end: %v", err)
		}
		if call.flush {
			leave <- false
		}
		_ = response.Body.Close()
	}
}
