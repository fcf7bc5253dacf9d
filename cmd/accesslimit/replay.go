package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/replay"
	"github.com/accesslimit/accesslimit/core/rulefile"
)

func replayCommand() *cli.Command {
	return &cli.Command{
		Name: "replay", Category: aboutFiles, Usage: "show whom limits would have hit, from access logs", ArgsUsage: "LOGS",
		Description: "accesslimit replay -rules limits.yaml -suggest 99.9 access.log old.log.gz\n" +
			"accesslimit replay -rules limits.yaml -guard 'login@POST /login' - <a.log",
		Flags: []cli.Flag{
			rulesFlag(),
			&cli.StringSliceFlag{Name: "guard", Usage: "`RULES` attached together, and where: 'api,login@POST /login'"},
			&cli.FloatFlag{Name: "suggest", OnlyOnce: true, Usage: "suggest limits that never refuse this `PERCENT` of subjects"},
			&cli.StringFlag{Name: "svg", OnlyOnce: true, Usage: "the `FILE` for a chart of the calls over time"},
			&cli.StringFlag{Name: "format", OnlyOnce: true, Usage: "the `FORMAT` of the lines: caddy, or a log_format of nginx"},
			&cli.StringSliceFlag{Name: "field", Usage: "a `FIELD` and where it is: user=request.headers.X-User"},
			&cli.StringSliceFlag{Name: "count", Usage: "a count function and its `STATUSES`: failed=401,403"},
			&cli.StringFlag{Name: "trust", OnlyOnce: true, Usage: "`PROXIES` whose X-Forwarded-For names callers: 10.0.0.0/8"},
			&cli.StringFlag{Name: "zone", OnlyOnce: true, Value: "UTC", Usage: "the `ZONE` of times without one, such as Europe/Berlin"},
			&cli.BoolFlag{Name: "lax", Usage: "accept logs that are cut off, unsorted or hard to read"},
			asJSON(),
		},
		DisableSliceFlagSeparator: true,
		Action:                    runReplay,
	}
}

func runReplay(ctx context.Context, c *cli.Command) error {
	options, uncounted, err := replayOptions(c)
	if err != nil {
		return err
	}
	logs, err := openLogs(c)
	if err != nil {
		return err
	}
	defer logs.close()
	options.OnProgress = logs.progress(os.Stderr)
	report, err := replay.Run(ctx, options, logs.all...)
	logs.endProgress(os.Stderr)
	if errors.Is(err, replay.ErrBadLines) {
		return printBadLines(c, report, err)
	}
	if err != nil {
		return replayFailure(err)
	}
	err = show(c, report, func() error {
		_, err := io.WriteString(c.Root().Writer, report.String()+uncounted)
		return err
	})
	if err != nil {
		return err
	}
	return drawReplay(c, report) // at the end, so that a wrong name does not cost the report
}

// drawReplay writes the chart, if it is wanted.
func drawReplay(c *cli.Command, report *replay.Report) error {
	name := c.String("svg")
	if name == "" {
		return nil
	}
	title := "Calls by " + strings.Join(names(c.String("rules")), ", ")
	return os.WriteFile(name, []byte(report.Chart.SVG(title)), 0o644)
}

// replayFailure returns an error for people at a shell, with what to type if a format is not known.
func replayFailure(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	text := strings.TrimPrefix(err.Error(), "replay: ")
	if errors.Is(err, replay.ErrFormat) {
		text += "\nDescribe a line: -format '$remote_addr $other [$time_local] \"$request\" $status $rest'. Names of nginx's variables\n" +
			"say what is known of a call; any other name stands for a text that is skipped."
	}
	if errors.Is(err, replay.ErrOrder) {
		text += ".\nThe figures would be wrong. Sort the lines by time (with tac if the newest comes first), name the files\n" +
			"of several days one by one, and log how long calls took if you log when they began; or accept this with -lax."
	}
	return errors.New(text)
}

// printBadLines prints lines that could not be read, and returns why that is too much.
func printBadLines(c *cli.Command, report *replay.Report, err error) error {
	for _, l := range report.BadExamples {
		fmt.Fprintf(c.Root().ErrWriter, "%s:%d: %s: %s\n", l.Log, l.Line, l.Why, l.Text)
	}
	do := "use the rest with -lax"
	if report.BadLines > 0 {
		do = "name the -format, or " + do
	}
	return fmt.Errorf("%s: %s", strings.TrimPrefix(err.Error(), "replay: "), do)
}

// replayOptions returns what the flags say, apart from the logs, and a note on what they do not say.
func replayOptions(c *cli.Command) (o replay.Options, uncounted string, err error) {
	paths := names(c.String("rules"))
	if len(paths) == 0 {
		return o, "", usage(c, "name the files with the rules: -rules limits.yaml")
	}
	checked, err := readRules(c, paths...)
	if err != nil {
		return o, "", err
	}
	functions, unknown, err := replayFunctions(c, checked.Functions())
	if err != nil {
		return o, "", err
	}
	if o.Guards, err = replayGuards(c, functions, paths); err != nil {
		return o, "", err
	}
	return o, uncountedNote(unknown), replayReading(c, &o)
}

// uncountedNote says which functions decide what counts, and are not known.
func uncountedNote(unknown []rulefile.FunctionUse) (note string) {
	for _, use := range unknown {
		note += fmt.Sprintf("\nRule %q: only the service knows which outcomes its count %q counts. Here all count, without -count %s=401.\n", use.Rule, use.Name, use.Name)
	}
	return note
}

// replayReading sets the options on how logs are read, and what is wanted.
func replayReading(c *cli.Command, o *replay.Options) (err error) {
	o.Format, o.Suggest, o.AllowBadLines = c.String("format"), c.Float("suggest"), c.Bool("lax")
	if c.IsSet("suggest") && !(o.Suggest > 0 && o.Suggest <= 100) { // also if it is no number
		return usage(c, "-suggest %v: write a percentage, such as 99.9", o.Suggest)
	}
	if o.Zone, err = time.LoadLocation(c.String("zone")); err != nil {
		return usage(c, "-zone: %v", err)
	}
	o.ClientIP = trusted(c)
	o.Fields, err = replayFields(c)
	return err
}

// trusted returns from which proxies the log has the addresses of callers.
func trusted(c *cli.Command) core.ClientIP {
	return core.ClientIP{TrustedProxies: names(c.String("trust"))}
}

// replayFields returns from where fields are read.
func replayFields(c *cli.Command) (map[string]string, error) {
	fields := make(map[string]string)
	for _, text := range c.StringSlice("field") {
		name, from, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usage(c, "-field %q: write a field, and where it is in a line, as in user=request.headers.X-User", text)
		}
		fields[name] = from
	}
	return fields, nil
}

// replayGuards returns the rules as the flags attach them: by default, all of them together to all calls.
func replayGuards(c *cli.Command, functions rulefile.Functions, paths []string) (guards []replay.Guard, err error) {
	options := offline()
	options.ClientIP = trusted(c)
	limiter, err := core.New(options)
	var wrong *core.RuleError
	if errors.As(err, &wrong) {
		return nil, usage(c, "-trust %v: %s", wrong.Value, wrong.Why)
	}
	if err != nil {
		return nil, err
	}
	defer limiter.Close()
	set, err := rulefile.Load(limiter, functions, paths...)
	if err != nil {
		return nil, printMistakes(c, err)
	}
	texts := c.StringSlice("guard")
	if len(texts) == 0 {
		texts = []string{strings.Join(set.Names(), ",")}
	}
	for _, text := range texts {
		guard, err := replayGuard(c, set, text)
		if err != nil {
			return nil, err
		}
		guards = append(guards, guard)
	}
	return guards, nil
}

// replayGuard reads one guard: "api,login@POST /login".
func replayGuard(c *cli.Command, set *rulefile.Set, text string) (g replay.Guard, err error) {
	list, where, attached := strings.Cut(text, "@")
	for _, name := range names(list) {
		rule, ok := set.Rule(name)
		if !ok {
			return g, usage(c, "-guard %q: there is no rule %q; the rules are %s", text, name, strings.Join(set.Names(), ", "))
		}
		g.Rules = append(g.Rules, rule)
	}
	method, path, ok := strings.Cut(where, " ")
	switch {
	case len(g.Rules) == 0:
		return g, usage(c, "-guard %q names no rule", text)
	case !attached:
		return g, nil
	case !ok && strings.HasPrefix(where, "/"):
		path = where
	case !ok:
		return g, usage(c, "-guard %q: write a method and a path behind @, or only a path, as in login@POST /login", text)
	default:
		g.Methods = []string{method}
	}
	g.Paths = []string{path}
	return g, nil
}
