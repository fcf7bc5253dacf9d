package adaptertest

import "strings"

// try is a request, byte by byte.
type try struct {
	method, target string
	lines          []string // of its header
}

// tries returns requests that might get around a rule: each spelling of a path with GET and with
// HEAD, headers that ask for another method or path, and tricks with the method itself.
func tries() (all []try) {
	for _, target := range spelledTargets {
		all = append(all, try{"GET", target, nil}, try{"HEAD", target, overrides})
	}
	for _, line := range overrides {
		all = append(all, try{"GET", "/limit/admin", lines(line)}, try{"POST", "/limit/admin", lines(line)})
	}
	return append(all, spelledMethods...)
}

// overrides are headers by which some frameworks and gateways replace the request line.
var overrides = lines("X-Http-Method-Override: POST", "X-Http-Method: DELETE", "X-Method-Override: OPTIONS", "X-Original-Url: /free/x",
	"X-Rewrite-Url: /free/x", "X-Original-Uri: /free/x", "X-Forwarded-Prefix: /free", "X-Forwarded-Host: other.test", "X-Forwarded-Path: /free/x")

var spelledMethods = []try{
	{"POST", "/limit/admin", lines("X-Http-Method-Override: GET")}, {"POST", "/files/a", lines("X-Http-Method-Override: HEAD")},
	{"get", "/limit/admin", nil}, {"Get", "/limit/admin", nil}, {"GET ", "/limit/admin", nil}, {"HEAD", "/limit/admin", nil},
	{"head", "/limit/admin", nil}, {"POST", "/limit/admin?_method=GET", nil}, {"OPTIONS", "*", nil}, {"GET", "*", nil},
	{"OPTIONS", "/limit/admin", nil}, {"TRACE", "/limit/admin", nil}, {"CONNECT", "/limit/admin", nil},
	{"CONNECT", "service.test:80", nil}, {"PROPFIND", "/limit/admin", nil}, {"PRI", "*", nil},
}

// spelledTargets are spellings of guarded paths. Some routers serve some of them.
var spelledTargets = []string{
	"/limit/admin", "/limit/adm%69n", "/%6cimit/admin", "/%6Cimit/%61%64%6d%69%6e", "/limit%2fadmin", "/limit%2Fadmin", "/limit%5cadmin",
	"/limit\\admin", "\\limit\\admin", "//limit/admin", "///limit///admin", "/limit//admin", "/./limit/admin", "/limit/./admin",
	"/x/../limit/admin", "/x/%2e%2e/limit/admin", "/x/..%2flimit/admin", "/x/%2e./limit/admin", "/x%2f..%2flimit%2fadmin",
	"/../limit/admin", "/..%2flimit/admin", "/%2e%2e/limit/admin", "/limit/%2e/admin", "/%2e/limit/admin", "/limit/..;/limit/admin",
	"/..;/limit/admin", "/;x=y/limit/admin", "/limit;x=y/admin", "/limit/admin;x=y", "/limit/admin;", "/limit/admin%3bx=y",

	"/limit/admin/", "/limit/admin//", "/limit/admin///", "/limit/admin/.", "/limit/admin/./", "/limit/admin/x/..", "/limit/admin/x/../",
	"/limit/admin/..//admin", "/limit/admin/../admin", "/limit/admin%2f", "/limit/admin%2f%2f", "/limit/admin/%2e", "/limit/%61dmin/",
	"/limit/admin.", "/limit/admin..", "/limit/admin.json", "/limit/admin%2ejson", "/limit/admin~", "/limit/admin*", "/limit/admin,",

	"/LIMIT/Admin", "/Limit/ADMIN/", "/limit/ADM%49N", "/LIM%49T/admin", "/l\u0131mit/adm\u0131n", "/l%c4%b1mit/admin", "/\uff4cimit/admin",
	"/%ef%bd%8cimit/admin", "/limit\uff0fadmin", "/limit%ef%bc%8fadmin", "/limit%e2%88%95admin", "/limi\u0074\u0301/admin",

	"/limit%c0%afadmin", "/limit%e0%80%afadmin", "/limit%f0%80%80%afadmin", "/limit/%c1%a1dmin", "/limit/%e0%81%a1dmin", "/limit%u002fadmin",
	"/limit/%u0061dmin", "/limit%252fadmin", "/limit/%2561dmin", "/x/%252e%252e/limit/admin", "/limit/%zz", "/limit/admin%", "/limit/admin%6",
	"/limit/\xe4dmin", "/limit/admin\xff",

	"/limit/admin%00", "/limit/admin%00.json", "/%00/limit/admin", "/limit/admin\x00", "/limit/admin%0a", "/limit/admin%0d%0aX-A:%20b",
	"/limit/admin%09", "/limit/admin%20", "/limit/%20admin", "/limit/admin+", "/limit/admin%7f", "/limit/admin\t", "/limit/admin x",

	"/limit/admin?", "/limit/admin??", "/limit/admin?x=/free", "/limit/admin?/../../free/x", "/limit/admin%3f", "/limit/admin%3fx=/free/x",
	"/limit/admin#f", "/limit/admin#/free/x", "/free/x#/../../limit/admin", "/limit/admin%23", "/limit/admin&x=y", "/limit/admin?%00",

	"http://service.test/limit/admin", "HTTP://SERVICE.TEST/limit/admin", "http://service.test//limit/admin", "http://other.test/limit/admin",
	"http://other.test:81/limit/adm%69n", "https://service.test/limit/admin", "ftp://service.test/limit/admin", "http:///limit/admin",
	"http://free/../limit/admin", "http://a@b/limit/admin", "//free/x/../../limit/admin", "//service.test/limit/admin", "limit/admin",
	"http:limit/admin", "http://service.test", "http://service.test?/limit/admin", ":80/limit/admin", "?/limit/admin", "*/limit/admin",

	"/files/../limit/admin", "/files/%2e%2e/limit/admin", "/files/..%2flimit/admin", "/FILES/%2e%2e/limit/admin", "/files/a%2fb", "/files/a",
	"/Files/a/", "/files/..", "/files/%2e%2e", "/files/.", "/files/%2e", "/files/%2f", "/files//", "/files/a/b", "/files/a%5cb", "/files/a;b",
	"/files/%00", "/files/%ff", "/files/*", "/files/:name", "/files/{name}", "/files/%2a", "/files/a?", "/files/+", "/files/%25", "/files/a%2f..",
	"/free/../files/x", "/free/%2e%2e/files/x", "/free/..%2ffiles", "/free/..%2ffiles%2fx", "/files/%2e%2e%2ffree", "/files/..%2ffree%2fx",

	"/deep/a", "/deep/a/b", "/deep/", "/deep", "/deep//", "/deep/../free/x", "/deep/%2e%2e/free/x", "/deep/..%2ffree%2fx", "/deep/../open/x",
	"/deep/%2e%2e/%2e%2e/open/x", "/deep/a/../../open/x", "/DEEP/../open/x", "/deep%2fa", "/deep/%2f", "/deep/a%2f..%2f..%2fopen", "/deep/.",
	"/open/../deep/x", "/open/%2e%2e/deep/x", "/open/..%2fdeep/x", "/open/../limit/admin", "/open/%2e%2e/limit/admin", "/open/..%2flimit/admin",
	"/open//../deep/x", "/open/./../deep/x", "/OPEN/../deep/x", "/open%2f../deep/x", "/open;/../deep/x", "/open/..;/deep/x",

	"/" + strings.Repeat("./", 1500) + "limit/admin", strings.Repeat("/", 3000) + "limit/admin", strings.Repeat("/x/..", 600) + "/limit/admin",
	"/files/" + strings.Repeat("a", 3000), "/deep/" + strings.Repeat("a/", 1500), "/deep/" + strings.Repeat("../", 1000) + "free/x",
	"/files/" + strings.Repeat("%2e%2e%2f", 300) + "free", "/limit/admin?" + strings.Repeat("/free/x", 400), "/files/" + strings.Repeat("a", 6000),
}
