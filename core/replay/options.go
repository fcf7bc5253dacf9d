package replay

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// Options say which rules decide, and how the logs are read.
type Options struct {
	// Guards are the rules, as the service attaches them. A call passes the Guards in this order, until
	// one refuses it. At least one is required.
	Guards []Guard
	// Format is the form of the lines: common, combined, vhost_combined, traefik_common, envoy_text,
	// istio_text, caddy, traefik, envoy, json, a log_format of nginx, also with the directive around it,
	// or a format string of Envoy. By default, it is detected for each log from its first 50 lines. The
	// format json has one object a line, with the names of nginx's variables; Fields can name others.
	Format string
	// Fields say from where in a line a field is read, in place of what the format says: a variable of
	// the log_format, an operator of Envoy, or a path of names in JSON, such as request.headers.X-Tenant.
	// The fields are time (when the line was written), start (when the call began), seconds, milliseconds
	// and nanoseconds (how long it took), address, user, method, uri, request (a whole request line),
	// host, status, size (of the body), route (the framework's pattern), header:NAME, cookie:NAME, and
	// value:NAME, which the functions of rules find with Request.Value("NAME").
	Fields map[string]string
	// Zone is the time zone of times that are logged without one: UTC by default.
	Zone *time.Location
	// ClientIP is the service's Options.ClientIP, if the address in the log is that of a proxy. By
	// default the address in the log is the caller's.
	ClientIP core.ClientIP
	// Suggest, if set, is the percentage of subjects that a suggested limit never refuses, up to 100,
	// such as 99.9. By default, no limits are suggested.
	Suggest float64
	// AllowBadLines accepts logs of which more than one line in a hundred cannot be read, those that
	// are cut off, and those that are not in order of time, whose figures are wrong.
	AllowBadLines bool
	// OnProgress, if set, receives the number of lines read so far, now and then.
	OnProgress func(lines int)
	// OnDecision, if set, receives every decision, and when the call began.
	OnDecision func(began time.Time, event core.Event)
}

// Guard is a set of rules that are decided together, as a [core.Guard] is.
type Guard struct {
	// Rules are the rules, each with a Name. Warn is ignored, and so are overrides, of which a log knows
	// nothing. Functions may run several times for a call.
	Rules []core.Rule
	// Methods and Paths name the routes that the Guard is attached to, in the form of
	// [core.Rule]; all by default. A rule's own Methods and Paths hold beside them.
	Methods, Paths []string
}

// check returns what is wrong with the options.
func (o *Options) check() error {
	if len(o.Guards) == 0 {
		return errors.New("there are no rules")
	}
	if !(o.Suggest >= 0 && o.Suggest <= 100) { // also if it is no number
		return fmt.Errorf("suggest is %v: it is a percentage of subjects, such as 99.9", o.Suggest)
	}
	for _, g := range o.Guards {
		if slices.ContainsFunc(g.Rules, func(r core.Rule) bool { return r.Name == "" }) {
			return errors.New("a rule has no Name, by which it would be reported")
		}
		where := core.Rule{Name: "guard", Limit: core.PerSecond(1), Methods: g.Methods, Paths: g.Paths}
		if wrong := where.Check(nil); wrong != nil {
			return fmt.Errorf("a guard's %s: %s", wrong[0].Field, wrong[0].Why)
		}
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	return nil
}
