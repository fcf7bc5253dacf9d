// Package rulefile reads the rules of a service from files in YAML or JSON, so that limits can be
// reviewed and changed without touching the code.
//
//	limiter, err := core.New(core.Options{Redis: rdb, Identify: core.BearerToken(verify)})
//	...
//	set, err := rulefile.Watch(limiter, rulefile.Functions{}, "limits.yaml")
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer set.Close()
//	router.Use(ginlimit.With(set.MustGuard("api")))
//
// [Watch] follows the files while the service runs; [Load] reads them once. Either way, the guards
// of the [Set] use the newest correct rules, and each call is decided by a single version of them.
// [Set.Diff] says beforehand which counters keep their use, and which start empty. [Check] needs no
// Limiter: it is for CI, and so is the command accesslimit.
//
// # The form of a file
//
// A file has a version and a list of rules. This rule has a limit and nothing else:
//
//	version: 1
//	rules:
//	  - name: api
//	    limit: 100/s
//
// A rule has a name, a limit, and any of the other fields of [core.Rule], in snake case. Here is
// every one of them, though no rule can have all:
//
//	# yaml-language-server: $schema=schema.json
//	version: 1
//	rules:
//	  - name: api
//	    limit: 100/s                      # the text form that core.ParseLimit reads
//	    also: [5000/5m, 100000/day@UTC]   # further limits
//	    need_login: true                  # admit users only, and count by user
//	    key: [user, route]                # see below
//	    cost: by_size                     # Functions.Costs["by_size"]
//	    plan: plan_of                     # Functions.Plans["plan_of"]
//	    plans:                            # what it returns, and the limits for it
//	      free: 10/s
//	      internal: unlimited
//	    ban: {after: 5, for: 15m, max: 24h}
//	    mode: dry_run                     # refuse nobody, and only count and report
//	    warn: [0.8, 1]                    # report these fractions to Options.OnThreshold
//	    skip:
//	      addresses: [10.0.0.0/8, 192.0.2.7]
//	      paths: [/health]                # the same as except
//	      function: is_probe              # Functions.Skips["is_probe"]
//	    paths: [/api/**]
//	    except: [/api/docs/**]
//	    methods: [GET, POST]
//	    on_store_error: count_locally 0.25
//	    message: Please slow down.
//	  - name: login
//	    seconds: 900                      # in place of limit, with max_count
//	    max_count: 5
//	    count: failed                     # Functions.Counts["failed"]
//	    on_store_error: fail_closed
//	  - name: search
//	    limit: 100000/s
//	    limit_for: contract               # Functions.LimitFor["contract"]
//	    key: global
//	    lease: 1000
//	    skip: is_probe                    # a function alone
//	  - name: transfer
//	    limit: 5/15m log
//	    note: amount                      # Functions.Notes["amount"]
//	    mode: soft                        # let other calls pass too, marked for the handler
//
// A key is ip, user, host, route, global, header:NAME, query:NAME, param:NAME, value:NAME, the name
// of a function in [Functions].Keys, or a list of these, which counts each combination by itself.
// value:NAME is the value that an earlier middleware left under the string NAME ([core.ByValue]).
// Without a key, the user is counted with need_login, and otherwise the IP.
//
// A rule ignores a call if any part of skip says so. Addresses are those that Options.ClientIP
// finds. Prefixes of length 0 are refused.
//
// JSON has the same form. It may have the field $schema beside version. The schema for editors is
// schema.json in the folder of this package.
//
// # What is refused
//
// Every rule passes the checks of core that a rule in Go passes. Beyond that, a file is read
// strictly: unknown fields, fields that are given twice, names that stand for two rules (in one
// file or in several), empty lists and values, and functions that are not registered are errors. So
// are anchors, aliases and tags of YAML, a second document, texts without quotes that YAML reads as
// something else (name: 404), and numbers in any other spelling than that of JSON. A file is UTF-8
// with the line ends of Unix, and without a byte order mark.
//
// Load reports all errors at once, each with its place:
//
//	limits.yaml:4:5: rule "api": unknown field "limits" (did you mean "limit"?)
//	limits.yaml:9:12: rule "login": ban.for = "15 m": is not a span such as 15m, 24h or 90s
//
// The exceptions are errors of syntax: only the first of a file is reported, and YAML does not tell
// its column, which is then 1. In JSON, columns behind the escapes \/ and \ud83d\ude00 on a line
// are a few characters off.
//
// # One document for a fleet
//
// Instead of files, the rules can be one document in Redis. [Document.Write] publishes a version of
// it, and every process that called [Follow] begins to use it within about a second.
//
// # Bounds
//
// A file has at most one megabyte. Together there are at most 100 files with four megabytes and
// 1,000 rules. Lists and plans have at most 1,000 entries, a rule 100 fields, and a text 4,096
// bytes. Only regular files are read.
package rulefile
