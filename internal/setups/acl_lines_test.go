package setups_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// aclLines are the lines that rightsPage tells operators to give to Redis, as words.
type aclLines struct {
	everybody, cluster, ring, database, optional, operators []string
	followers, publishers, keepers, readers                 []string // of a document with rules
}

func readACL(t *testing.T) (l aclLines) {
	t.Helper()
	page, err := os.ReadFile("../../" + rightsPage)
	if err != nil {
		t.Fatal(err)
	}
	// In the order of the page.
	in := []*[]string{&l.everybody, &l.cluster, &l.ring, &l.database, &l.optional, &l.operators, &l.followers, &l.publishers, &l.keepers, &l.readers}
	for line := range strings.Lines(string(page)) {
		words := strings.Fields(line)
		if len(words) < 4 || words[0] != "ACL" || words[1] != "SETUSER" {
			continue
		}
		if len(in) == 0 {
			t.Fatalf("%s has one line ACL SETUSER too many: %s", rightsPage, line)
		}
		*in[0], in = words, in[1:]
	}
	if len(in) > 0 {
		t.Fatalf("%s lacks %d lines ACL SETUSER", rightsPage, len(in))
	}
	return l
}

// rights returns the commands that a line permits.
func rights(line []string) (commands []string) {
	for _, word := range line {
		if command, ok := strings.CutPrefix(word, "+"); ok {
			commands = append(commands, command)
		}
	}
	return commands
}

// permit gives a server's user the rights of these lines, without one of them.
func permit(t *testing.T, server *redis.Client, less string, lines ...[]string) {
	t.Helper()
	ctx := context.Background()
	rest := func(word string) bool { return word != "+"+less }
	if err := server.Do(ctx, "acl", "deluser", lines[0][2]).Err(); err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		var command []any
		for _, word := range line {
			if rest(word) {
				command = append(command, word)
			}
		}
		if err := server.Do(ctx, command...).Err(); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
}

// userOf returns the user that the line creates.
func userOf(line []string) (user, password string) {
	for _, word := range line {
		if secret, ok := strings.CutPrefix(word, ">"); ok {
			password = secret
		}
	}
	return line[2], password
}

// denied returns the commands that servers refused since the last call of denied, except the CLIENT
// SETINFO by which go-redis introduces itself.
func denied(t *testing.T, servers ...*redis.Client) (commands []string) {
	t.Helper()
	for _, server := range servers {
		log, err := server.ACLLog(background, 100).Result()
		if err = errors.Join(err, server.ACLLogReset(background).Err()); err != nil {
			t.Fatal(err)
		}
		for _, entry := range log {
			if !strings.HasPrefix(entry.Object, "client") && !slices.Contains(commands, entry.Object) {
				commands = append(commands, entry.Object)
			}
		}
	}
	return commands
}
