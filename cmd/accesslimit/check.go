package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/accesslimit/accesslimit/core/rulefile"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Category: aboutFiles, Usage: "find mistakes in files with rules", ArgsUsage: "FILES",
		Description: "accesslimit check -require api,login -functions plan:plan_of limits.yaml",
		Flags: append(serviceFlags(),
			&cli.BoolFlag{Name: "strict", Usage: "fail on warnings, too"},
			asJSON(),
		),
		Action: check,
	}
}

// checked is what check prints.
type checked struct {
	OK        bool          `json:"ok"`
	Rules     []string      `json:"rules"`
	Functions []functionUse `json:"functions"`
	Mistakes  []remark      `json:"mistakes"`
	Warnings  []remark      `json:"warnings"`
}

// functionUse is a rule's use of a function.
type functionUse struct {
	Rule  string `json:"rule"`
	Field string `json:"field"`
	Name  string `json:"name"`
}

// remark is a mistake or a warning.
type remark struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	text    string
}

func check(_ context.Context, c *cli.Command) error {
	service, err := serviceOf(c)
	if err != nil {
		return err
	}
	if !c.Args().Present() {
		return usage(c, "name the files to check")
	}
	if c.Args().Len() > 1 && slices.Contains(c.Args().Slice(), "-") {
		return usage(c, "- stands for standard input, and is checked by itself")
	}
	found := checked{Rules: []string{}, Functions: []functionUse{}, Mistakes: []remark{}, Warnings: []remark{}}
	rules, err := checkRules(c, service, c.Args().Slice()...)
	if err != nil {
		found.Mistakes = mistakes(err)
	} else {
		found.add(rules)
	}
	found.OK = len(found.Mistakes) == 0 && (len(found.Warnings) == 0 || !c.Bool("strict"))
	if err := show(c, found, func() error { return found.print(c) }); err != nil {
		return err
	}
	if !found.OK {
		return errFound
	}
	return nil
}

// checkRules checks files with rules. If there is only one path, it may be - for standard input, or
// a pipe, such as a shell makes for <(...). A service refuses both, because it loads its files
// repeatedly.
func checkRules(c *cli.Command, service rulefile.Service, paths ...string) (*rulefile.Checked, error) {
	name := paths[0]
	info, err := os.Stat(name)
	isPipe := err == nil && info.Mode()&os.ModeNamedPipe != 0
	if len(paths) > 1 || name != "-" && !isPipe {
		return rulefile.Check(service, paths...)
	}
	text, err := readText(c, name)
	if err != nil {
		return nil, err
	}
	if name == "-" {
		name = "standard input"
	}
	return rulefile.CheckText(service, name, text)
}

// readText returns the text of a file, or of standard input for "-".
func readText(c *cli.Command, name string) (string, error) {
	if name == "-" {
		text, err := io.ReadAll(c.Root().Reader)
		return string(text), err
	}
	text, err := os.ReadFile(name)
	return string(text), err
}

// add adds what is known of correct rules.
func (found *checked) add(rules *rulefile.Checked) {
	found.Rules = rules.Names()
	for _, use := range rules.Functions() {
		found.Functions = append(found.Functions, functionUse(use))
	}
	for _, w := range rules.Warnings() {
		text := fmt.Sprintf("%v: warning: rule %q: %s", w.Place, w.Rule, w.Why)
		found.Warnings = append(found.Warnings, remark{w.Place.File, w.Place.Line, w.Place.Column, w.Rule, w.Code, w.Why, text})
	}
}

func (found *checked) print(c *cli.Command) error {
	out := c.Root().Writer
	for _, r := range append(found.Mistakes, found.Warnings...) {
		fmt.Fprintln(out, escaped(r.text))
	}
	switch {
	case len(found.Mistakes) > 0:
		fmt.Fprintf(out, "%s. None of the rules would be used.\n", counted(len(found.Mistakes), "mistake"))
	case len(found.Warnings) > 0:
		fmt.Fprintf(out, "No mistakes in %s, but %s.\n", counted(len(found.Rules), "rule"), counted(len(found.Warnings), "warning"))
	default:
		fmt.Fprintf(out, "No mistakes in %s: %s.\n", counted(len(found.Rules), "rule"), strings.Join(found.Rules, ", "))
	}
	return nil
}

// mistakes returns the errors that were joined.
func mistakes(err error) (all []remark) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			all = append(all, mistakes(one)...)
		}
		return all
	}
	var wrong *rulefile.Error
	if !errors.As(err, &wrong) {
		return []remark{{Message: err.Error(), text: err.Error()}}
	}
	return []remark{{wrong.Place.File, wrong.Place.Line, wrong.Place.Column, wrong.Rule, "", wrong.Err.Error(), err.Error()}}
}
