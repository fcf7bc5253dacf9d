package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"
)

// asJSON is the flag that makes a command print JSON.
func asJSON() cli.Flag { return &cli.BoolFlag{Name: "json", Usage: "print JSON"} }

// show prints a result as JSON if that is wanted, and otherwise by text.
func show(c *cli.Command, result any, text func() error) error {
	if !c.Bool("json") {
		return text()
	}
	encoder := json.NewEncoder(c.Root().Writer)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(result)
}

// counted returns a number of things: "1 rule", "2 rules".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// printable quotes a text that could forge lines, or columns.
func printable(text string) string {
	if quoted := strconv.Quote(text); strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`) != text {
		return quoted
	}
	return text
}
