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
	// load returns what the page shows. It returns within the limiter's Timeout. Parts that failed
	// say why in the model itself; an error means that the request is wrong.
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

// mostCommands is how many commands Redis gets for what a page says of many rules, so that it does
// not keep the service's calls waiting. Beside these, a page takes about fifty.
const mostCommands = 400

// query is a request to see a page, by somebody who may.
type query struct {
	ctx    context.Context
	values url.Values
	who    Identity
}

// get returns the first value of a parameter, or "".
func (q *query) get(name string) string { return q.values.Get(name) }

// notFromPage is the reply to requests that are another site's, or that may be.
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

// steady returns the context of a request without its end. All that the page does with it ends within
// the limiter's Timeout, and an act should be done whole. The end of fasthttp's context is that of
// the server, and a server that shuts down changes it without a lock.
func steady(r *http.Request) context.Context { return context.WithoutCancel(r.Context()) }

// serve serves somebody who is authorized.
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

// location is what a path leads to: the last word of it, whatever stands before.
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
	if l.api && name == "now" { // which has no name among the pages
		name = ""
	}
	for _, page := range pages {
		if page.name == name {
			return page, true
		}
	}
	return page{}, false
}

// isLive reports whether the location is that of the live stream.
func (l location) isLive() bool { return !l.api && l.name == liveName }

// isFile reports whether the location is that of an embedded file.
func (l location) isFile() bool { return !l.api && files[l.name].body != nil }

// missingSlash returns where to redirect a request for the page's own path without a slash at the
// end, from which relative links would lead elsewhere. It takes every unknown word for that path,
// because a handler does not know where it is mounted. It returns "" if nothing is missing.
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

// fail sends why a request fails: as JSON to callers of the API, and otherwise as plain text, which
// needs no rights to be shown.
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
