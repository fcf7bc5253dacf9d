package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

func marksCommand() *cli.Command {
	return &cli.Command{
		Name: "marks", Category: aboutRedis, Usage: "write all bans and overrides into a file, or set them again", ArgsUsage: "export | import [FILE]",
		UsageText:   "Each line of the file has one, in JSON. import reads standard input without a\nFILE. If a line is wrong, nothing is set. Those that have ended are left out.",
		Description: "accesslimit marks export > marks.jsonl\naccesslimit marks import marks.jsonl -note 'after the loss'",
		Flags:       actFlags(),
		Action:      markFile,
	}
}

func markFile(ctx context.Context, c *cli.Command) error {
	switch args := c.Args(); {
	case args.First() == "export" && args.Len() == 1:
		return exportMarks(ctx, c)
	case args.First() == "import" && args.Len() <= 2:
		return importMarks(ctx, c)
	default:
		return usage(c, "write export, or import and perhaps one file")
	}
}

func exportMarks(ctx context.Context, c *cli.Command) error {
	s, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer s.close()
	all, err := s.ExportMarks(ctx)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(c.Root().Writer)
	encoder.SetEscapeHTML(false)
	for _, m := range all {
		if err := encoder.Encode(m); err != nil {
			return err
		}
	}
	return nil
}

// importedMarks is what import prints as JSON.
type importedMarks struct {
	Set   int `json:"set"`
	Ended int `json:"ended"`
}

func importMarks(ctx context.Context, c *cli.Command) error {
	ctx, err := withActor(ctx, c)
	if err != nil {
		return err
	}
	name := "-"
	if c.Args().Len() == 2 {
		name = c.Args().Get(1)
	}
	text, err := readText(c, name)
	if err != nil {
		return err
	}
	s, err := openRules(ctx, c)
	if err != nil {
		return err
	}
	defer s.close()
	if s.rules == nil && !c.Bool("force") {
		return usage(c, "there are no rules here to tell whether those of the lines exist: name their files with -rules, or add -force")
	}
	all, err := s.readMarks(ctx, []byte(text))
	if err != nil {
		return err
	}
	var done importedMarks
	done.Set, done.Ended, err = s.ImportMarks(ctx, all)
	if failed := (*core.StoreError)(nil); errors.As(err, &failed) && done.Set > 0 {
		fmt.Fprintf(c.Root().ErrWriter, "accesslimit: %s set before the error: import them all again\n", counted(done.Set, "line"))
	}
	if err != nil {
		return err
	}
	return show(c, done, func() error {
		_, err := fmt.Fprintf(c.Root().Writer, "Set %s. %s had ended.\n", counted(done.Set, "mark"), counted(done.Ended, "other"))
		return err
	})
}

// readMarks reads marks from lines, and prints what is wrong with each.
func (s *session) readMarks(ctx context.Context, text []byte) (all []operate.Mark, err error) {
	number := 0
	for line := range bytes.Lines(text) {
		if number++; len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		m, wrong := s.readMark(ctx, line)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if wrong != nil {
			fmt.Fprintf(s.c.Root().ErrWriter, "line %d: %s\n", number, why(wrong))
			err = errFound
		}
		all = append(all, m)
	}
	return all, err
}

// readMark reads a mark from a line. Unknown fields are errors: a misspelled "until" would make a mark
// without an end.
func (s *session) readMark(ctx context.Context, line []byte) (m operate.Mark, err error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m); err != nil {
		return m, fmt.Errorf("is no mark in JSON: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return m, errors.New("has more than one mark")
	}
	if !s.c.Bool("force") && !slices.Contains(s.rules.Names(), m.Rule) {
		return m, fmt.Errorf("no rule is named %q. The rules: %s. Correct it, or add -force", m.Rule, strings.Join(s.rules.Names(), ", "))
	}
	return m, s.CheckMark(ctx, m)
}
