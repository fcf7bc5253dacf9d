package console

import (
	"cmp"
	"embed"
	"html/template"
	"net/http"
	"time"
)

//go:embed web
var web embed.FS

// file is an embedded file that a page loads.
type file struct {
	contentType string
	body        []byte
}

var files = map[string]file{
	"style.css": {"text/css; charset=utf-8", embedded("style.css")},
	"script.js": {"text/javascript; charset=utf-8", embedded("script.js")},
	"icon.svg":  {"image/svg+xml", embedded("icon.svg")},
}

func embedded(name string) []byte {
	body, err := web.ReadFile("web/" + name)
	if err != nil {
		panic(err)
	}
	return body
}

func (h *Handler) sendFile(w http.ResponseWriter, r *http.Request, name string) {
	send(w, r, http.StatusOK, files[name].contentType, files[name].body)
}

// layout is what all pages show.
type layout struct {
	Title, Heading string
	Current        string // the name of the page
	Pages          []link
	Name, Role     string // who sees it
	ReadOnly, Acts bool
	Token          string // for forms, if Acts
	Notice         string // about an act that was just done
	Problem        string // about an act that failed
	Model          any
}

// link is a page in the menu.
type link struct{ Name, Path, Title string }

var menu = func() (links []link) {
	for _, page := range pages {
		links = append(links, link{page.name, cmp.Or(page.name, "./"), page.title})
	}
	return links
}()

// templates are the pages by their names. html/template escapes what they show for its context.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"text": readable, "show": show, "moment": moment, "span": span, "number": number, "rate": rate,
	"mode":    modeWords,
	"count":   func(n int64) string { return number(uint64(max(0, n))) },
	"join":    func(page layout, rule *explainedRule, at int) quickActs { return quickActs{page, rule, at} },
	"machine": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
}).ParseFS(web, "web/*.html"))

// quickActs is what the forms beside a rule need.
type quickActs struct {
	Page layout
	Rule *explainedRule
	At   int
}

func templateOf(name string) string { return cmp.Or(name, "now") + ".html" }
