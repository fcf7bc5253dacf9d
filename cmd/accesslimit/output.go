package main

import (
	"encoding/json"

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
