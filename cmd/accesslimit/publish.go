package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/accesslimit/accesslimit/core/rulefile"
)

func publishCommand() *cli.Command {
	return &cli.Command{
		Name: "publish", Category: aboutDocument, Usage: "publish a file as the rules of all processes", ArgsUsage: "FILE",
		Description: "accesslimit publish limits.yaml -require api,login -note 'commit 4f1c2d'",
		Flags: documentFlags(append(append(serviceFlags(), authorFlags()...),
			&cli.BoolFlag{Name: "force", Usage: "publish even if a rule is removed"})...),
		Action: publish,
	}
}

func rollbackCommand() *cli.Command {
	return &cli.Command{
		Name: "rollback", Category: aboutDocument, Usage: "publish the text of an older version again",
		Description: "accesslimit rollback -to 7 -note 'version 8 refuses the app'",
		Flags: documentFlags(append([]cli.Flag{&cli.Int64Flag{Name: "to", OnlyOnce: true, Usage: "the `NUMBER` of the version, as history shows it; required"}},
			append(append(serviceFlags(), authorFlags()...), &cli.BoolFlag{Name: "force", Usage: "publish even if a rule is removed"})...)...),
		Action: rollback,
	}
}

func historyCommand() *cli.Command {
	return &cli.Command{
		Name: "history", Category: aboutDocument, Usage: "list the published versions, latest first",
		Description: "accesslimit history\naccesslimit history -text 7 > limits.yaml",
		Flags:       documentFlags(&cli.Int64Flag{Name: "text", OnlyOnce: true, Usage: "print the text of the version with this `NUMBER`"}),
		Action:      history,
	}
}

// documentFlags are the flags of commands about a document.
func documentFlags(flags ...cli.Flag) []cli.Flag {
	return append(append(flags,
		&cli.StringFlag{Name: "document", OnlyOnce: true, Usage: "its `PREFIX`, if it has one of its own: canary"},
	), append(redisFlags(), asJSON())...)
}

// withDocument calls do for the document that the flags name.
func withDocument(c *cli.Command, do func(*rulefile.Document) error) error {
	client, err := connect(c)
	if err != nil {
		return err
	}
	defer client.Close()
	document, err := newDocument(c, client)
	if err != nil {
		return err
	}
	return do(document)
}

func publish(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() != 1 {
		return usage(c, "name one file: it becomes the document of all processes")
	}
	name := c.Args().First()
	text, err := readText(c, name)
	if err != nil {
		return err
	}
	return withDocument(c, func(document *rulefile.Document) error {
		now, err := document.Read(ctx)
		if err != nil {
			return err
		}
		return replace(ctx, c, document, now, name, text)
	})
}

func rollback(ctx context.Context, c *cli.Command) error {
	if !c.IsSet("to") {
		return usage(c, "say which version to publish again, as in -to 7: \"accesslimit history\" lists them")
	}
	return withDocument(c, func(document *rulefile.Document) error {
		now, err := document.Read(ctx) // it may be gone, though older ones are kept
		if err != nil {
			return err
		}
		versions, err := document.History(ctx)
		if err != nil {
			return err
		}
		v, err := versionOf(c, versions, c.Int64("to"))
		if err != nil {
			return err
		}
		return replace(ctx, c, document, now, fmt.Sprintf("document@%d", v.Number), v.Text)
	})
}

// versionOf returns the latest version with a number.
func versionOf(c *cli.Command, versions []rulefile.Version, number int64) (rulefile.Version, error) {
	var numbers []string
	for _, v := range versions {
		if v.Number == number {
			return v, nil
		}
		numbers = append(numbers, fmt.Sprint(v.Number))
	}
	if len(versions) == 0 {
		return rulefile.Version{}, fmt.Errorf("there is no document under %q in Redis yet", documentOf(c))
	}
	return rulefile.Version{}, usage(c, "there is no version %d. The kept ones: %s", number, strings.Join(numbers, ", "))
}

// published is what publish and rollback print as JSON.
type published struct {
	Version *version `json:"version"` // null if nothing was published
	Changes []change `json:"changes"`
}

// replace publishes a text in place of the present version, after it was checked.
func replace(ctx context.Context, c *cli.Command, document *rulefile.Document, now rulefile.Version, name, text string) error {
	ctx, err := withActor(ctx, c)
	if err != nil {
		return err
	}
	changes, err := compare(c, now, name, text)
	if err != nil {
		return err
	}
	result := published{Changes: []change{}}
	for _, one := range changes {
		result.Changes = append(result.Changes, change(one))
	}
	if now.Text == text {
		return show(c, result, func() error {
			_, err := fmt.Fprintf(c.Root().Writer, "Nothing to publish: this is the text of %s.\n", printable(now.String()))
			return err
		})
	}
	next, err := document.Write(ctx, text, now)
	if err != nil {
		return err
	}
	result.Version = newVersion(next)
	return show(c, result, func() error {
		for _, one := range changes {
			fmt.Fprintln(c.Root().Writer, printable(one.String()))
		}
		_, err := fmt.Fprintf(c.Root().Writer, "Published %s. Processes use it within a second or so.\n", printable(next.String()))
		return err
	})
}

// compare checks a text, and returns what it changes. A present version that cannot be read is no
// reason not to replace it.
func compare(c *cli.Command, now rulefile.Version, name, text string) ([]rulefile.Change, error) {
	service, err := serviceOf(c)
	if err != nil {
		return nil, err
	}
	next, err := rulefile.CheckText(service, name, text)
	if err != nil {
		return nil, printMistakes(c, err)
	}
	before, err := rulefile.CheckText(rulefile.Service{}, "document", now.Text)
	if now.Number == 0 || err != nil {
		return nil, nil
	}
	changes := before.Diff(next)
	for _, one := range changes {
		if one.Field == "" && one.After == "" && !c.Bool("force") {
			return nil, usage(c, "%v. A service that attaches it would refuse the new version. If none does, add -force", one)
		}
	}
	return changes, nil
}

// version is a rulefile.Version in JSON.
type version struct {
	Number int64     `json:"number"`
	Author string    `json:"author,omitempty"`
	Note   string    `json:"note,omitempty"`
	Time   time.Time `json:"time"`
	Text   string    `json:"text"`
}

func newVersion(v rulefile.Version) *version {
	return &version{v.Number, v.Author, v.Note, v.Time, v.Text}
}

func history(ctx context.Context, c *cli.Command) error {
	return withDocument(c, func(document *rulefile.Document) error {
		versions, err := document.History(ctx)
		if err != nil {
			return err
		}
		if c.IsSet("text") {
			v, err := versionOf(c, versions, c.Int64("text"))
			if err == nil {
				_, err = fmt.Fprint(c.Root().Writer, v.Text)
			}
			return err
		}
		all := []*version{}
		for _, v := range versions {
			all = append(all, newVersion(v))
		}
		return show(c, all, func() error {
			for _, v := range versions {
				fmt.Fprintln(c.Root().Writer, printable(v.String()))
			}
			if len(versions) == 0 {
				fmt.Fprintln(c.Root().Writer, "Nothing was published yet.")
			}
			return nil
		})
	})
}
