package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// actFlags are the flags of commands that change something.
func actFlags(flags ...cli.Flag) []cli.Flag {
	return append(append(flags, authorFlags()...), liveFlags(
		&cli.BoolFlag{Name: "force", Usage: "act even if the rule or the subject looks wrong"},
	)...)
}

// authorFlags say who acts, and why.
func authorFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "note", OnlyOnce: true, Usage: "the `REASON`, which the audit shows; required"},
		&cli.StringFlag{Name: "author", OnlyOnce: true, Usage: "who acts, in place of USER@HOST: a `NAME`", Sources: cli.EnvVars("ACCESSLIMIT_AUTHOR")},
	}
}

// withActor returns a context that names who acts, and why.
func withActor(ctx context.Context, c *cli.Command) (context.Context, error) {
	note := strings.TrimSpace(c.String("note"))
	if note == "" {
		return nil, usage(c, "say why, for the audit: -note 'ticket 17'")
	}
	return operate.WithActor(ctx, cmp.Or(strings.TrimSpace(c.String("author")), login()), note), nil
}

// login returns USER@HOST.
func login() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	return name + "@" + host
}

// act is what an operator does to a subject of a rule.
type act struct {
	name string // in the audit
	more int    // how many arguments follow the rule and the subject
	do   func(ctx context.Context, s *session, rule, subject string) (changed bool, err error)
	// done and unchanged say what has become of the subject, %[1]s, and the rule, %[2]q.
	// If details is set, its result follows done.
	done, unchanged string
	details         func(ctx context.Context, s *session, rule, subject string) string
}

// acted is what an act prints as JSON.
type acted struct {
	Act     string `json:"act"`
	Rule    string `json:"rule"`
	Subject string `json:"subject"`
	Changed bool   `json:"changed"`
}

// run carries out the act that the arguments describe.
func (a act) run(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() != 2+a.more {
		return usage(c, "name a rule and a subject, such as login 203.0.113.7")
	}
	ctx, err := withActor(ctx, c)
	if err != nil {
		return err
	}
	s, err := openRules(ctx, c)
	if err != nil {
		return err
	}
	defer s.close()
	rule := c.Args().First()
	subject, err := s.Subject(c.Args().Get(1))
	if err != nil {
		return usage(c, "%s", why(err))
	}
	if err := s.confirm(rule, subject); err != nil {
		return err
	}
	changed, err := a.try(ctx, s, rule, subject)
	if err != nil {
		return err
	}
	if changed && a.details != nil && !c.Bool("json") {
		a.done += a.details(ctx, s, rule, subject)
	}
	return a.report(c, acted{a.name, rule, subject, changed})
}

// confirm returns an error if an act looks like a mistake, unless -force was given.
func (s *session) confirm(rule, subject string) error {
	if s.c.Bool("force") {
		return nil
	}
	if s.rules == nil {
		return usage(s.c, "there are no rules here to tell whether %q and %q are right: name their files with -rules, or add -force", rule, subject)
	}
	if hint := s.ActHint(rule, subject); hint != "" {
		return usage(s.c, "%s Correct it, or add -force.", hint)
	}
	return nil
}

// try carries out the act. Failed attempts are in the audit, too, but not those of which it is not known
// whether they failed.
func (a act) try(ctx context.Context, s *session, rule, subject string) (changed bool, err error) {
	changed, err = a.do(ctx, s, rule, subject)
	var failed *core.StoreError
	switch {
	case err == nil && !changed:
		s.RecordAttempt(ctx, operate.AuditEntry{Act: a.name, Rule: rule, Subject: subject, After: "not done: nothing to change"})
	case err != nil && !errors.As(err, &failed) && ctx.Err() == nil:
		s.RecordAttempt(ctx, operate.AuditEntry{Act: a.name, Rule: rule, Subject: subject, After: "not done: " + err.Error()})
	}
	return changed, err
}

func (a act) report(c *cli.Command, result acted) error {
	err := show(c, result, func() error {
		text := a.done
		if !result.Changed {
			text = "Nothing changed: " + a.unchanged
		}
		_, err := fmt.Fprintf(c.Root().Writer, text+"\n", operate.SubjectText(result.Subject), result.Rule)
		return err
	})
	if err == nil && !result.Changed {
		return errFound
	}
	return err
}
