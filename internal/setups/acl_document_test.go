package setups_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/core/rulefile"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// documentOf opens a document as the user of an ACL line, or without one.
func documentOf(t *testing.T, server *redistest.Server, prefix string, line []string) *rulefile.Document {
	t.Helper()
	client := server.Client(t, func(o *redis.Options) {
		if line != nil {
			o.Username, o.Password = userOf(line)
		}
	})
	document, err := rulefile.NewDocument(client, prefix)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// A document with rules is published and followed with exactly these rights. Without any one of
// them, the error names it, or the audit stream stays as it is.
func TestTheACLLinesForADocument(t *testing.T) {
	server := redistest.Start(t)
	admin, acl := server.Client(t), readACL(t)
	limiter := newLimiter(t, core.Options{Redis: admin, Timeout: patient})
	version, entries := rulefile.Version{}, 0
	for _, less := range append(rights(acl.publishers), "") {
		permit(t, admin, less, acl.publishers)
		if err := admin.ScriptFlush(background).Err(); err != nil {
			t.Fatal(err)
		}
		next, err := documentOf(t, server, "", acl.publishers).Write(background, "version: 1\nrules: [{name: api, limit: 1/s}]\n", version)
		found, errAudit := operate.New(limiter).Audit(background, "", 100)
		if errAudit != nil {
			t.Fatal(errAudit)
		}
		switch {
		case err == nil && less == "" && len(found) == entries+1: // as it should be
		case err == nil && less == "xadd" && len(found) == entries: // it is not recorded
		case err == nil && strings.HasPrefix(less, "z"): // it may be recorded more than once
		case isRefused(err) && names(err, less): // it is not published
			continue
		default:
			t.Errorf("without %q: %v, and the audit has %d entries, after %d before", less, err, len(found), entries)
		}
		version, entries = next, len(found)
	}
	for _, less := range append(rights(acl.followers), "") {
		permit(t, admin, less, acl.everybody, acl.followers)
		read, err := documentOf(t, server, "", acl.everybody).Read(background)
		if less == "" && (err != nil || read != version) || less != "" && (!isRefused(err) || !names(err, less)) {
			t.Errorf("without %q: %v, %v", less, read, err)
		}
	}
}

// The history is kept and read with exactly these rights. Without any one of them, the document is
// published all the same.
func TestTheACLLineForTheHistory(t *testing.T) {
	server := redistest.Start(t)
	admin, acl := server.Client(t), readACL(t)
	version, kept := rulefile.Version{}, 0
	for _, less := range append(rights(acl.keepers), "", "") {
		permit(t, admin, less, acl.publishers, acl.keepers)
		if err := admin.ScriptFlush(background).Err(); err != nil {
			t.Fatal(err)
		}
		document, err := documentOf(t, server, "", acl.publishers), error(nil)
		if version, err = document.Write(background, "version: 1\nrules: [{name: api, limit: 1/s}]\n", version); err != nil {
			t.Fatalf("without %q: %v", less, err)
		}
		history, err := document.History(background)
		switch {
		case less == "lrange" && isRefused(err) && names(err, less):
			kept++
		case less == "" && err == nil && len(history) > kept:
			kept = len(history)
		case less != "" && less != "lrange" && err == nil:
		default:
			t.Errorf("without %q: %v, %v, after %d", less, history, err, kept)
		}
	}
}

// A document with a prefix of its own can be read by processes that decide, and not written.
func TestTheACLLineForReaders(t *testing.T) {
	server := redistest.Start(t)
	admin, acl := server.Client(t), readACL(t)
	if strings.Contains(admin.Info(background, "server").Val(), "redis_version:6.") {
		return // which has no such patterns
	}
	permit(t, admin, "", acl.everybody, acl.readers)
	published, err := documentOf(t, server, "rules", nil).Write(background, "version: 1\nrules: [{name: api, limit: 1/s}]\n", rulefile.Version{})
	if err != nil {
		t.Fatal(err)
	}
	document := documentOf(t, server, "rules", acl.everybody)
	if read, err := document.Read(background); err != nil || read != published {
		t.Errorf("%v, %v", read, err)
	}
	if _, err := document.Write(background, published.Text, published); !isRefused(err) {
		t.Errorf("a process that only decides has written the document: %v", err)
	}
}

// A user can read the audit and nothing else, as GOVERNANCE.md says.
func TestTheRightsOfAnAuditor(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	if _, err := operate.New(newLimiter(t, core.Options{Redis: admin, Timeout: patient})).Ban(background, "n", "s", time.Hour); err != nil {
		t.Fatal(err)
	}
	limiter := newLimiter(t, core.Options{Timeout: patient, Redis: server.UserWith(t, "~"+auditKey, "+xrevrange")})
	if entries, err := operate.New(limiter).Audit(background, "", 10); err != nil || len(entries) != 1 {
		t.Errorf("the audit is %+v", entries)
	}
	if _, err := operate.New(limiter).Unban(background, "n", "s"); !isRefused(err) {
		t.Errorf("an auditor ends bans: %v", err)
	}
}

// names reports whether an error names a right.
func names(err error, right string) bool {
	return regexp.MustCompile(`\+` + right + `\b`).MatchString(err.Error())
}
