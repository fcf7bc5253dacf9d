package console

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
)

// page is one of the pages. It is shown by a template of its name, or as JSON.
type page struct {
	name  string // the last word of its path; "" is the first page
	title string
	// load returns what the page shows. It returns within the limiter's Timeout. Parts of the page
	// that failed say why in the model; an error means that the request is wrong.
	load func(h *Handler, q *query) (model any, err error)
}

// pages are the pages in the order of the menu.
var pages = []page{
	{"", "Now", (*Handler).loadNow},
	{"offenders", "Offenders", (*Handler).loadOffenders},
	{"subject", "Subject", (*Handler).loadSubject},
	{"explain", "Explain", (*Handler).loadExplain},
	{"rules", "Rules", (*Handler).loadRules},
	{"bans", "Bans", (*Handler).loadBans},
	{"audit", "Audit", (*Handler).loadAudit},
}

// maxQuery is the length of the longest query of a URL, which pages repeat in their forms. A subject of
// 1024 bytes takes 3 KB of it.
const maxQuery = 16 << 10

// mostCommands bounds the commands that a page about many rules sends to Redis, so that the
// service's calls do not have to wait. A page needs about fifty commands besides these.
const mostCommands = 400

// query is an authorized request to see a page.
type query struct {
	ctx    context.Context
	values url.Values
	who    Identity
}

// get returns the first value of a parameter, or "".
func (q *query) get(name string) string { return q.values.Get(name) }

// notFromPage is the reply to requests that come, or may come, from another site.
const notFromPage = "The request does not come from this page: open the page again. Other sites may only link to it."

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header(), r)
	if len(r.URL.RawQuery) > maxQuery {
		h.fail(w, r, http.StatusRequestURITooLong, "The parameters are too long.")
		return
	}
	if hasTokenInURL(r.URL.Query()) {
		h.fail(w, r, http.StatusBadRequest, "A token does not belong in a URL, which ends up in logs.")
		return
	}
	if isForeign(r) {
		h.fail(w, r, http.StatusForbidden, notFromPage)
		return
	}
	where := place(r.URL.Path)
	if target := where.missingSlash(r); target != "" {
		w.Header().Set("Location", target)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	who, ok := h.authorize(w, r)
	if !ok {
		return
	}
	h.serve(w, r, where, who)
}

// steady returns the context of a request without its cancellation. Everything that the page does
// with it ends within the limiter's Timeout, and an act should not be left half done. Besides,
// fasthttp's context is canceled only with its server, which changes it without a lock.
func steady(r *http.Request) context.Context { return context.WithoutCancel(r.Context()) }

// serve replies to an authorized request.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, where location, who Identity) {
	act, acts := acts[where.name]
	page, shows := where.page()
	switch {
	case acts && r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		h.refuse(w, r, who, http.StatusMethodNotAllowed, "Use POST to act.", "")
	case acts:
		h.act(w, r, where, who, act)
	case !shows && !where.isLive() && !where.isFile():
		h.refuse(w, r, who, http.StatusNotFound, "There is no such page.", "")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		h.refuse(w, r, who, http.StatusMethodNotAllowed, "Use GET to see this page.", "")
	case shows:
		h.show(w, r, where, who, page)
	case where.isLive():
		h.stream(w, r, who)
	default:
		h.sendFile(w, r, where.name)
	}
}

// location is what a path leads to, by its last word and the word before that.
type location struct {
	name string
	api  bool // the word before it is "api"
}

func place(path string) location {
	folder, name, found := cutLast(path)
	if !found {
		return location{name: path}
	}
	_, last, _ := cutLast(folder)
	return location{name, last == "api" && name != ""}
}

func cutLast(path string) (before, after string, found bool) {
	at := strings.LastIndexByte(path, '/')
	if at < 0 {
		return "", path, false
	}
	return path[:at], path[at+1:], true
}

func (l location) page() (page, bool) {
	name := l.name
	if l.api && name == "now" { // the first page has no name in a path
		name = ""
	}
	for _, page := range pages {
		if page.name == name {
			return page, true
		}
	}
	return page{}, false
}

// isLive reports whether the location is the live stream.
func (l location) isLive() bool { return !l.api && l.name == liveName }

// isFile reports whether the location is an embedded file.
func (l location) isFile() bool { return !l.api && files[l.name].body != nil }

// missingSlash returns where to redirect a request for the page's own path without the slash at its
// end, because relative links would be wrong there. A handler does not know where it is mounted, so
// missingSlash takes every unknown last word for that path. It returns "" if no slash is missing.
func (l location) missingSlash(r *http.Request) (target string) {
	if l.api || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return ""
	}
	name := l.name
	if r.URL.Path == "" { // http.StripPrefix removed all of it
		sent, _, _ := strings.Cut(r.RequestURI, "?")
		_, name, _ = cutLast(sent)
		name, _ = url.PathUnescape(name)
	} else if _, isPage := l.page(); isPage || l.name == liveName || l.isFile() || acts[l.name].do != nil || strings.Contains(l.name, ".") {
		return ""
	}
	if name == "" {
		return ""
	}
	target = "./" + url.PathEscape(name) + "/"
	if r.URL.RawQuery != "" {
		target += "?" + r.URL.RawQuery
	}
	return target
}

// show sends a page.
func (h *Handler) show(w http.ResponseWriter, r *http.Request, where location, who Identity, p page) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		h.refuse(w, r, who, http.StatusBadRequest, "The query cannot be read.", "")
		return
	}
	model, err := p.load(h, &query{steady(r), values, who})
	if err != nil {
		h.refuse(w, r, who, http.StatusBadRequest, sentence(err), "")
		return
	}
	if where.api {
		h.sendJSON(w, r, http.StatusOK, model)
		return
	}
	notice := ""
	if isFromPage(r) { // a link from elsewhere must not report an act
		notice = notices[values.Get("done")]
	}
	h.sendPage(w, r, http.StatusOK, who, p, model, notice)
}

// sendPage sends a page in HTML.
func (h *Handler) sendPage(w http.ResponseWriter, r *http.Request, status int, who Identity, p page, model any, notice string) {
	shown := layout{
		Title: h.options.Title, Heading: p.title, Current: p.name, Pages: menu, Name: show(who.Name), Role: who.Role.String(),
		ReadOnly: h.options.ReadOnly, Acts: h.acts(who), Notice: notice, Model: model,
	}
	if shown.Acts {
		shown.Token = token(w, r)
	}
	var body bytes.Buffer
	if err := templates.ExecuteTemplate(&body, templateOf(p.name), shown); err != nil {
		h.log(r, slog.LevelError, "a page could not be made", slog.Any("error", err))
		h.fail(w, r, http.StatusInternalServerError, "The page could not be made. The log of the service says why.")
		return
	}
	send(w, r, status, "text/html; charset=utf-8", body.Bytes())
}

func (h *Handler) sendJSON(w http.ResponseWriter, r *http.Request, status int, model any) {
	body, err := json.Marshal(model)
	if err != nil {
		h.log(r, slog.LevelError, "a reply could not be made", slog.Any("error", err))
		status, body = http.StatusInternalServerError, []byte(`{"error":"The reply could not be made."}`)
	}
	send(w, r, status, "application/json", append(body, '\n'))
}

// failure is the reply to a request that fails, in JSON.
type failure struct {
	Error string `json:"error"`
}

// fail replies why a request fails: as JSON to callers of the API, and otherwise as plain text,
// which can be shown to anybody.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, status int, why string) {
	if place(r.URL.Path).api {
		h.sendJSON(w, r, status, failure{why})
		return
	}
	send(w, r, status, "text/plain; charset=utf-8", []byte(why+"\n"))
}

func send(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the caller may have left
	}
}

// sentence returns an error as a sentence.
func sentence(err error) string {
	text := readable(err.Error())
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
