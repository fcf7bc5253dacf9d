package main

import (
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/accesslimit/accesslimit/core/rulefile"
)

// serviceFlags are the flags that say what the service has that uses the files.
func serviceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "require", OnlyOnce: true, Usage: "the `NAMES` of rules that must be there: api,login"},
		&cli.StringFlag{Name: "functions", OnlyOnce: true, Usage: "the only `FUNCTIONS` for rules: plan:plan_of,key:tenant"},
	}
}

// serviceOf returns what these flags say.
func serviceOf(c *cli.Command) (service rulefile.Service, err error) {
	service.Require = names(c.String("require"))
	if !c.IsSet("functions") {
		return service, nil
	}
	var uses []rulefile.FunctionUse
	for _, text := range names(c.String("functions")) {
		field, name, ok := strings.Cut(text, ":")
		if !ok || name == "" {
			return service, usage(c, "-functions %q: write the field of the rule before the function, as in plan:%s", text, text)
		}
		uses = append(uses, rulefile.FunctionUse{Field: field, Name: name})
	}
	functions, err := rulefile.StandIns(uses...)
	if err != nil {
		return service, usage(c, "-functions: %v", strings.TrimPrefix(err.Error(), "rulefile: "))
	}
	service.Functions = &functions
	return service, nil
}
