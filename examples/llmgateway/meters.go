package main

import (
	"strings"

	"github.com/accesslimit/accesslimit/core"
)

// meter counts one kind of usage of a user or a team.
type meter struct {
	name    string
	counter core.Counter
	subject func(user string) string
	permits func(usage) int
}

func meters(limiter *core.Limiter) []meter {
	counted := func(name string, limit core.Limit, subject func(string) string, permits func(usage) int) meter {
		return meter{name, limiter.MustCounter(name, limit), subject, permits}
	}
	return []meter{
		counted("input", core.PerDay(200_000), byUser, usage.input),
		counted("team-input", core.PerDay(10_000_000), byTeam, usage.input),
		counted("output", core.PerDay(20_000), byUser, usage.output),
		counted("team-output", core.PerDay(1_000_000), byTeam, usage.output),
		counted("budget", core.PerCalendarMonth(50_000_000, "UTC"), byTeam, usage.cost),
	}
}

func byUser(user string) string { return "user:" + user }

func byTeam(user string) string {
	team, _, _ := strings.Cut(user, "/")
	return "team:" + team
}

// usage is a number of tokens. Those of the input that the model had cached are part of the input.
type usage struct{ Input, Cached, Output int }

// input weighs a cached token a tenth.
func (u usage) input() int  { return u.Input - u.Cached + (u.Cached+9)/10 }
func (u usage) output() int { return u.Output }

// cost is in millionths of a dollar.
func (u usage) cost() int { return 3*u.input() + 15*u.output() }
