package console

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/operate"
)

// call is a call as somebody typed it.
type call struct {
	Method  string `json:"method"`
	Host    string `json:"host"`
	Path    string `json:"path"`
	Route   string `json:"route"`
	Address string `json:"address"`
	User    string `json:"user"`
	Header  string `json:"header"` // lines such as "Name: value"
}

// info returns the call that core explains. Identify does not run for it, because the page would
// show which credentials are right.
func (c call) info() (operate.Call, error) {
	header, err := c.headers()
	path, address := strings.TrimSpace(c.Path), strings.TrimSpace(c.Address)
	switch {
	case err != nil:
		return operate.Call{}, err
	case !strings.HasPrefix(path, "/"):
		return operate.Call{}, fmt.Errorf("path = %q: must start with a slash, as every path does", path)
	case address != "" && !adapter.PeerAddr(address).IsValid():
		return operate.Call{}, fmt.Errorf("address = %q: must be like 203.0.113.7, or 203.0.113.7:1234", address)
	}
	return operate.Call{
		Method: strings.ToUpper(strings.TrimSpace(c.Method)), Host: strings.TrimSpace(c.Host), Path: path,
		Route: strings.TrimSpace(c.Route), RemoteAddr: address, User: c.User, Anonymous: true, Header: header,
	}, nil
}

func (c call) headers() (http.Header, error) {
	header := make(http.Header)
	for line := range strings.Lines(c.Header) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, ":")
		switch {
		case line == "":
		case !ok || name == "" || strings.ContainsAny(name, " \t"):
			return nil, errors.New("a header must be a line such as \"Name: value\"")
		default:
			header.Add(textproto.CanonicalMIMEHeaderKey(name), strings.TrimSpace(value))
		}
	}
	return header, nil
}

// mayExplain returns why somebody may not have a call explained, or nil. Rules may check
// credentials in any header and any parameter, so viewers may send neither. Nobody may send one
// whose name says that it is a credential, because URLs end up in logs.
func mayExplain(who Identity, info *operate.Call) error {
	_, query, _ := strings.Cut(info.Path, "?")
	parameters, _ := url.ParseQuery(query)
	names := append(slices.Sorted(maps.Keys(info.Header)), slices.Sorted(maps.Keys(parameters))...)
	secret := slices.IndexFunc(names, credentials.MatchString)
	switch {
	case len(names) > 0 && who.Role != Operator:
		return errors.New("viewers name a user and an address: only operators may add headers and a query")
	case secret >= 0:
		return fmt.Errorf("%q may be a credential, which does not belong in a URL: name the user instead", names[secret])
	default:
		return nil
	}
}

// credentials matches the names of headers and parameters that hold credentials.
var credentials = regexp.MustCompile(`(?i)authoriz|authentic|auth([-_]|$)|cookie|token|secret|key$|session|sid$|passw|pwd|credential|jwt|sig(nature)?$|assertion|cert$`)
