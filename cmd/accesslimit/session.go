package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/core/rulefile"
)

// session is what a command does with a live Redis.
type session struct {
	*operate.Operator
	c       *cli.Command
	client  redis.UniversalClient
	limiter *core.Limiter
	guard   *core.Guard       // of the rules
	rules   *rulefile.Checked // nil if none are known
}

// liveFlags are the flags of commands that act on the rules of a live Redis.
func liveFlags(flags ...cli.Flag) []cli.Flag {
	return append(append(flags,
		rulesFlag(),
		&cli.StringFlag{Name: "document", OnlyOnce: true, Usage: "the `PREFIX` of the document with the rules, in place of files"},
	), append(redisFlags(), asJSON())...)
}

// open begins a session, without rules. The caller closes it.
func open(ctx context.Context, c *cli.Command) (*session, error) {
	s, err := newSession(c)
	if err != nil {
		return nil, err
	}
	s.warnOfPrefix(ctx)
	return s, nil
}

// newSession begins a session with changed options. It does not ask Redis yet.
func newSession(c *cli.Command, change ...func(*core.Options)) (*session, error) {
	client, err := connect(c)
	if err != nil {
		return nil, err
	}
	options := offline()
	options.Redis, options.Prefix, options.Timeout, options.OneKeyPerScript = client, c.String("prefix"), c.Duration("timeout"), true
	options.Logger = warnings(c.Root().ErrWriter)
	for _, change := range change {
		change(&options)
	}
	limiter, err := core.New(options)
	if err != nil {
		client.Close()
		return nil, err
	}
	return &session{c: c, client: client, limiter: limiter, Operator: operate.New(limiter)}, nil
}

// warnOfPrefix warns if no service counts where the command looks.
func (s *session) warnOfPrefix(ctx context.Context) {
	if unused, err := s.PrefixUnused(ctx); unused && err == nil { // commands report errors themselves
		fmt.Fprintf(s.c.Root().ErrWriter, "accesslimit: nothing lies under the prefix %q in this Redis: if a service counts there, -prefix or the database in the URL is wrong\n", s.c.String("prefix"))
	}
}

// warnOfRule warns if no rule of this name is known, which may be why a list is empty. Without
// files, the known names are those in the document, and those with subjects in the last hour.
func (s *session) warnOfRule(ctx context.Context, rule string) {
	var known []string
	if s.rules != nil {
		known = s.rules.Names()
	} else if now, err := s.document(ctx); err == nil && now.Number > 0 {
		if rules, err := rulefile.CheckText(rulefile.Service{}, "document", now.Text); err == nil {
			known = rules.Names()
		}
	}
	if list, err := s.Top(ctx, "", time.Hour); err == nil {
		for _, e := range append(list.Refused, list.Near...) {
			known = append(known, e.Rule)
		}
	}
	slices.Sort(known)
	switch known = slices.Compact(known); {
	case slices.Contains(known, rule):
	case len(known) == 0:
		fmt.Fprintf(s.c.Root().ErrWriter, "accesslimit: nothing here tells whether a rule is named %q\n", rule)
	default:
		fmt.Fprintf(s.c.Root().ErrWriter, "accesslimit: no rule is named %q here. The rules: %s\n", rule, strings.Join(known, ", "))
	}
}

// offline returns the options of a Limiter without Redis, which any rules fit: callers are named by
// arguments, and nobody waits for thresholds.
func offline() core.Options {
	return core.Options{
		Identify:    core.ContextValue("accesslimit: nobody"),
		OnThreshold: func(context.Context, core.Threshold) {},
		Logger:      slog.New(slog.DiscardHandler),
	}
}

// openOffline begins a session without Redis.
func openOffline(c *cli.Command) (*session, error) {
	limiter, err := core.New(offline())
	if err != nil {
		return nil, err
	}
	return &session{c: c, limiter: limiter, Operator: operate.New(limiter)}, nil
}

func (s *session) close() {
	s.limiter.Close()
	if s.client != nil {
		s.client.Close()
	}
	runtime.KeepAlive(s.guard)
}

// openRules begins a session with the rules of files or the document, if there are any.
func openRules(ctx context.Context, c *cli.Command) (*session, error) {
	s, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	if err = s.attach(ctx, standIns); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// openKnownRules begins a session that needs rules.
func openKnownRules(ctx context.Context, c *cli.Command) (*session, error) {
	s, err := openRules(ctx, c)
	if err == nil && s.rules == nil {
		s.close()
		return nil, noRules(c)
	}
	return s, err
}

// noRules is the error of a command that needs rules.
func noRules(c *cli.Command) error {
	return usage(c, "which rules? There is no document under %q in Redis, so name their files: -rules limits.yaml", documentOf(c))
}

// functionsOf returns the functions for the uses that rules make of them.
type functionsOf func(uses []rulefile.FunctionUse) (rulefile.Functions, error)

// standIns returns functions for commands that run none.
func standIns(uses []rulefile.FunctionUse) (rulefile.Functions, error) {
	return rulefile.StandIns(uses...)
}

// attach finds the rules, and attaches them with the functions for their uses.
func (s *session) attach(ctx context.Context, functions functionsOf) error {
	check := func(service rulefile.Service) (*rulefile.Checked, error) {
		return rulefile.Check(service, names(s.c.String("rules"))...)
	}
	if s.c.String("rules") == "" {
		present, err := s.document(ctx)
		if err != nil || present.Number == 0 {
			return err
		}
		check = func(service rulefile.Service) (*rulefile.Checked, error) {
			return rulefile.CheckText(service, fmt.Sprintf("document@%d", present.Number), present.Text)
		}
	}
	return s.attachChecked(check, functions)
}

// attachChecked attaches the rules that check returns, with the functions for their uses. It prints
// their mistakes.
func (s *session) attachChecked(check func(rulefile.Service) (*rulefile.Checked, error), functions functionsOf) error {
	rules, err := check(rulefile.Service{})
	if err != nil {
		return printMistakes(s.c, err)
	}
	known, err := functions(rules.Functions())
	if err != nil {
		return err
	}
	if s.rules, err = check(rulefile.Service{Functions: &known}); err != nil {
		return printMistakes(s.c, err)
	}
	s.guard, err = s.rules.Attach(s.limiter)
	return printMistakes(s.c, err)
}

// document returns the present version of the document with the rules.
func (s *session) document(ctx context.Context) (rulefile.Version, error) {
	document, err := newDocument(s.c, s.client)
	if err != nil {
		return rulefile.Version{}, err
	}
	return document.Read(ctx)
}

// newDocument returns the document that the flags name, in a Redis.
func newDocument(c *cli.Command, client redis.UniversalClient) (*rulefile.Document, error) {
	document, err := rulefile.NewDocument(client, documentOf(c))
	if err != nil {
		return nil, err
	}
	return document.WithTimeout(c.Duration("timeout"))
}

// documentOf returns the prefix of the document.
func documentOf(c *cli.Command) string {
	if prefix := c.String("document"); prefix != "" {
		return prefix
	}
	return c.String("prefix")
}
