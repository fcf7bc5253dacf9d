package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/core/rulefile"
)

func explainCommand() *cli.Command {
	return &cli.Command{
		Name: "explain", Category: aboutFiles, Usage: "show which rules a call meets, and why", ArgsUsage: "'METHOD PATH'",
		Description: "accesslimit explain -rules limits.yaml 'POST /login' -ip 203.0.113.7",
		Flags: append([]cli.Flag{
			rulesFlag(),
			&cli.StringFlag{Name: "ip", OnlyOnce: true, Usage: "the caller's `ADDRESS`"},
			&cli.StringFlag{Name: "user", OnlyOnce: true, Usage: "the `NAME` that Options.Identify returns"},
			&cli.StringFlag{Name: "host", OnlyOnce: true, Usage: "the `HOST` that is called"},
			&cli.StringSliceFlag{Name: "header", Usage: "a `HEADER`, as in -header 'X-Tenant: acme'"},
			&cli.StringFlag{Name: "route", OnlyOnce: true, Usage: "the framework's `PATTERN`, such as /users/:id"},
			&cli.BoolFlag{Name: "grpc", Usage: "the call is one of gRPC, which has no METHOD"},
		}, append(append(resultFlags(),
			&cli.BoolFlag{Name: "live", Usage: "also show what is used on a live Redis"},
		), append(redisFlags(), asJSON())...)...),
		DisableSliceFlagSeparator: true,
		Action:                    explain,
	}
}

// rulesFlag names the files with the rules.
func rulesFlag() cli.Flag {
	return &cli.StringFlag{Name: "rules", OnlyOnce: true, Usage: "the `FILES` with the rules", Sources: cli.EnvVars("ACCESSLIMIT_RULES")}
}

// resultFlags are what functions return that only the service knows.
func resultFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "plan", OnlyOnce: true, Usage: "the `PLAN` that functions return"},
		&cli.IntFlag{Name: "cost", OnlyOnce: true, Value: 1, Usage: "the `PERMITS` that functions return"},
		&cli.StringSliceFlag{Name: "key", Usage: "a `RESULT` of a key function, as in -key tenant=acme"},
	}
}

func explain(ctx context.Context, c *cli.Command) error {
	call, err := callOf(c)
	if err != nil {
		return err
	}
	s, unknown, err := openExplained(ctx, c)
	if err != nil {
		return err
	}
	defer s.close()
	report, err := s.Explain(ctx, call)
	if err != nil {
		return err
	}
	return show(c, report, func() error {
		fmt.Fprint(c.Root().Writer, report)
		printUnknown(c.Root().Writer, report, unknown)
		return nil
	})
}

// openExplained begins a session with the rules, and functions that return what the flags say. It
// returns the uses of those that no flag speaks of.
func openExplained(ctx context.Context, c *cli.Command) (s *session, unknown []rulefile.FunctionUse, err error) {
	switch {
	case c.Bool("live"):
		s, err = open(ctx, c)
	case c.String("rules") == "":
		return nil, nil, usage(c, "name the files with the rules: -rules limits.yaml; or with -live, those of the document are explained")
	default:
		s, err = openOffline(c)
	}
	if err != nil {
		return nil, nil, err
	}
	err = s.attach(ctx, func(uses []rulefile.FunctionUse) (functions rulefile.Functions, err error) {
		functions, unknown, err = resultsOf(c, uses)
		return functions, err
	})
	if err == nil && s.rules == nil {
		err = noRules(c)
	}
	if err != nil {
		s.close()
		return nil, nil, err
	}
	return s, unknown, nil
}

// printUnknown says which functions of the rules that apply are not known.
func printUnknown(to io.Writer, report operate.Explanation, unknown []rulefile.FunctionUse) {
	for _, rule := range report.Rules {
		for _, use := range unknown {
			if rule.Applies && use.Rule == rule.Name {
				fmt.Fprintf(to, "\nRule %q: only the service knows what its %s %q returns.\n", use.Rule, use.Field, use.Name)
			}
		}
	}
}

// callOf returns the call that the arguments describe.
func callOf(c *cli.Command) (call operate.Call, err error) {
	if c.Args().Len() != 1 {
		return call, usage(c, "describe one call, as in 'POST /login'")
	}
	call = operate.Call{User: c.String("user"), Host: c.String("host"), Route: c.String("route"), Anonymous: true, Header: make(http.Header)}
	method, path, ok := strings.Cut(c.Args().First(), " ")
	if !ok {
		method, path = "GET", method
	}
	if c.Bool("grpc") {
		method = ""
	}
	if call.Method, call.Path = method, strings.TrimSpace(path); !strings.HasPrefix(call.Path, "/") {
		return call, usage(c, "%q is no call: write a method and a path, as in 'POST /login'", c.Args().First())
	}
	for _, line := range c.StringSlice("header") {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return call, usage(c, "-header %q: write a name and a value, as in 'X-Tenant: acme'", line)
		}
		call.Header.Add(name, strings.TrimSpace(value))
	}
	if call.RemoteAddr = c.String("ip"); call.RemoteAddr != "" {
		if _, err := netip.ParseAddr(call.RemoteAddr); err != nil {
			return call, usage(c, "-ip %q is no address", call.RemoteAddr)
		}
	}
	return call, nil
}

// resultsOf returns functions that return what the flags say, and the uses of those that no flag
// speaks of.
func resultsOf(c *cli.Command, uses []rulefile.FunctionUse) (f rulefile.Functions, unknown []rulefile.FunctionUse, err error) {
	if f, err = rulefile.StandIns(uses...); err != nil {
		return f, nil, err
	}
	keys := make(map[string]string)
	for _, text := range c.StringSlice("key") {
		name, subject, ok := strings.Cut(text, "=")
		if f.Keys[name] == nil || !ok || subject == "" {
			return f, nil, usage(c, "-key %q: write a key function of the rules and its result, as in tenant=acme", text)
		}
		keys[name] = subject
	}
	for _, use := range uses {
		switch subject, ok := keys[use.Name]; {
		case use.Field == "key" && ok:
			f.Keys[use.Name] = func(core.Request) (string, error) { return subject, nil }
		case use.Field == "plan" && c.IsSet("plan"):
			f.Plans[use.Name] = func(core.Request) (string, error) { return c.String("plan"), nil }
		case use.Field == "cost" && c.IsSet("cost"):
			f.Costs[use.Name] = func(core.Request) int { return c.Int("cost") }
		case !slices.Contains(unknown, use):
			unknown = append(unknown, use)
		}
	}
	return f, unknown, nil
}
