# A change must pass "make test", and then "make check"; .ci/run does both. "make nightly" runs what takes longer. They need Go, git, make and a
# network, and fetch the rest themselves.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.9.0
MODULES     = $(dir $(wildcard go.mod */go.mod cmd/*/go.mod examples/*/go.mod core/*/*/go.mod internal/*/go.mod))
BROWSERTEST = core/console/browsertest

# "make test" runs the root module, which is the library. "make check" runs the rest: EXTENSIONS are the modules that extend it, and the tests in
# PROCESSES run programs, the longest first. They mostly wait, so several modules run at once. "make nightly" has the tests, vet and staticcheck of
# BROWSERTEST and bench: the bench has the newest versions of what it compares, and compiles 392 packages that nothing else needs.
PROCESSES   = internal/faults examples internal/setups cmd/accesslimit internal/linearizable examples/metrics internal/migrating internal/apiclients
NESTED      = $(filter-out ./ bench/ $(BROWSERTEST)/,$(MODULES))
EXTENSIONS  = $(filter-out $(addsuffix /,$(PROCESSES)),$(NESTED))
ALL_CHECKS  = go vet ./... && go run $(STATICCHECK) ./... && $(TEST) -vet=off ./...
ADAPTERS    = $(filter-out $(dir $(wildcard */go.mod)),$(wildcard *limit/))
# Tests wait for servers and for other processes: with one package for each processor, two processors were busy for 59 % of the time.
TEST        = go test -count=1 -timeout=30m -p=$$((2 * $$(getconf _NPROCESSORS_ONLN)))
FUZZTIME    = 10m

# How many traces each model is tried with. "make newest" tries more, without the race detector, and "make long" 1000.
export RAPID_CHECKS ?= 10

# Everything is compiled only once: vet, staticcheck and the programs that tests build use the same packages. A step that compiles for anything
# else costs a minute or two. Without debug information, each of 70 programs is linked in half a second less. gin's tag nomsgpack leaves out a
# codec that takes as long to compile as all the rest of gin.
FLAGS       = export GOFLAGS="$$(go env GOFLAGS) -tags=nomsgpack -ldflags=-w";
RACE        = export CGO_ENABLED=1 GOFLAGS="$$(go env GOFLAGS) -race -tags=nomsgpack -ldflags=-w";

.PHONY: help test check nightly flakes suite processes web rivals redis compiler curl proxies prometheus chromium axe faketime format vet staticcheck vulnerabilities race race-all extensions servers long cross fuzz agree chaos newest newest-update pictures bench bench-quick
.NOTPARALLEL:

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do printf '%-14s %s\n' "$$name" "$$text"; done

test: redis format suite ## run what guards the promises: the checks and tests below, in this order (7 minutes on two processors with an empty build cache)

check: vet staticcheck extensions processes race ## run the other checks and tests that a change must pass

nightly: web rivals cross newest race-all agree chaos ## run what takes longer: a browser, the bench, other systems, the newest dependencies, the race detector everywhere, an older version, faults at length

redis: ## install redis-server and redis-cli unless they are there (the tests start their own servers)
	@sh .ci/install redis-server
	@sh .ci/install redis-cli

curl: ## install curl unless it is there (the examples' own commands are tried with it)
	@sh .ci/install curl

proxies: ## install nginx and Caddy unless they are there (they ask before they forward calls)
	@sh .ci/install nginx
	@sh .ci/install caddy

prometheus: ## install prometheus and promtool unless they are there (the dashboard and the alert rules are tried with them)
	@sh .ci/install prometheus
	@sh .ci/install promtool

chromium: ## install Chromium unless it is there (the operator's page is tried in it)
	@sh .ci/install chromium

axe: ## install axe-core with npm, by its hash (the operator's pages are checked with it)
	@sh .ci/install npm
	@cd $(BROWSERTEST) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error

compiler: ## install a C compiler unless it is there (the race detector needs one)
	@sh .ci/install "$$(go env CC)"

format: ## fail if a file is not as gofmt would write it
	@files=$$("$$(go env GOROOT)/bin/gofmt" -l .) || exit 1; \
	[ -z "$$files" ] || { echo "run gofmt -w on:"; echo "$$files"; exit 1; }

vet: ## run go vet in every module but those of "make web" and "make rivals"
	@$(FLAGS) go vet ./... && sh .ci/each 2 'go vet ./...' $(NESTED)

staticcheck: ## run staticcheck in the same modules
	@bin=$$(mktemp -d) && trap 'rm -rf "$$bin"' EXIT && GOBIN="$$bin" go install $(STATICCHECK) && $(FLAGS) \
	PATH="$$bin:$$PATH" && staticcheck ./... && sh .ci/each 2 'staticcheck ./...' $(NESTED)

# govulncheck exits with 3 if it has found something, and with 1 if it could not look.
vulnerabilities: ## look for known vulnerabilities in the packages that are used, unless their database cannot be reached
	@bin=$$(mktemp -d) && trap 'rm -rf "$$bin"' EXIT && GOBIN="$$bin" go install $(GOVULNCHECK) && \
	for module in $(MODULES); do (echo "$$module" && cd "$$module" && "$$bin/govulncheck" -scan package ./... 2>"$$bin/errors") || { \
		cat "$$bin/errors" >&2; grep -q 'fetching vulnerabilities' "$$bin/errors" || exit 1; \
		echo "the vulnerability database could not be reached: nothing was checked"; break; }; done

# With nothing cached, this takes 80 s of CPU time: 180 s with optimizations and gin's codec (see NEWEST). The runtime does not work without
# optimizations. What overflows an int on arm does so on 386, and only the latter can be run here. Only what is published is compiled.
ROUGH       = -tags=nomsgpack -gcflags='all=-N -l' -gcflags=runtime=

cross: redis ## compile every module that is published, tests included, for a processor of 32 bits, and run what counts there; compile the core for systems that are not Unix
	@for module in ./ cmd/accesslimit/ $(filter-out examples/%,$(EXTENSIONS)); do (cd "$$module" && \
	CGO_ENABLED=0 GOARCH=386 go list -export -deps -test $(ROUGH) ./... >/dev/null) || exit 1; done
	@for system in plan9/amd64 js/wasm; do echo "$$system" && \
	CGO_ENABLED=0 GOOS=$${system%/*} GOARCH=$${system#*/} go build $(ROUGH) ./core/rulefile ./core/operate ./nethttplimit || exit 1; done
	@CGO_ENABLED=0 GOOS=windows GOARCH=amd64 go list -export -deps -test $(ROUGH) ./core/rulefile/... >/dev/null
	@case "$$(go env GOHOSTOS)/$$(go env GOHOSTARCH)" in linux/amd64|linux/386) export CGO_ENABLED=0 GOARCH=386 RAPID_CHECKS=10; \
	$(TEST) $(ROUGH) -run '^$$' ./core/internal/clock >/dev/null || { echo "this system runs no programs for 386: they were only compiled"; exit 0; }; \
	$(TEST) $(ROUGH) ./core/internal/algorithm ./core/internal/memstore ./core/internal/localfirst ./nethttplimit && \
	$(TEST) $(ROUGH) -run Panic ./core/internal/redisstore && \
	$(TEST) $(ROUGH) -run 'Cost|AboveAnInt|Refused$$|Wrong|InvalidPlans|FuzzRule' ./core && \
	$(TEST) $(ROUGH) -run '/^(memory|redis)$$' ./internal/promise;; esac

# The longest first: they wait, and the others are compiled and run meanwhile.
LONGEST     = ./core/internal/redisstore ./core/operate ./internal/promise ./core ./core/adaptertest ./core/outgoing

suite: ## run the library's tests with the oldest dependencies allowed
	@$(FLAGS) set -x; $(TEST) -vet=off $(LONGEST) $$(go list ./... | grep -Ev '/(examples|internal/setups)$$')

extensions: redis ## do the same with the modules that extend the library: adapters for further frameworks, metrics, traces, redisrate
	@$(FLAGS) sh .ci/each 3 '$(TEST) -vet=off ./...' $(EXTENSIONS)

processes: redis curl proxies prometheus faketime ## do the same with the command, the examples, the drills, and the faults done to real processes
	@$(FLAGS) sh .ci/each 3 '$(TEST) -vet=off ./...' $(PROCESSES)

web: redis chromium axe ## try the operator's page in a browser, and make its screenshots anew
	@$(FLAGS) cd $(BROWSERTEST) && $(ALL_CHECKS)

rivals: redis ## check and test the bench, which compares this library with others
	@$(FLAGS) cd bench && $(ALL_CHECKS)

# What shares memory is here, without its longest tests, and without what only passes calls on: "make race-all" has those, and the packages without
# goroutines. Under the detector, a program sleeps for a second before it exits.
race: redis compiler ## run the store in the process, marks, leases and what else shares memory there under the race detector
	@$(RACE) export GORACE=atexit_sleep_ms=0; set -x; $(TEST) -vet=off ./core/internal/memstore ./core/internal/marks $$(grep -lrE --include='*.go' \
	'"sync|[[:space:]]go [a-z.]+\(' core/internal | xargs -n 1 dirname | sort -u | grep -Ev '/(algorithm|redisstore|toplist|traces)$$' | sed 's|^|./|')

race-all: redis compiler ## run all tests but those of real processes under the race detector
	@$(RACE) for module in ./ $(EXTENSIONS); do (set -x; cd "$$module" && $(TEST) -vet=off $$(go list ./... | grep -Ev '/(examples|internal/setups)$$')) || exit 1; done

servers: ## run the suites on each server named by its path: make servers SERVERS="/opt/redis-6.2/redis-server /opt/valkey/valkey-server"
	@[ -n "$(SERVERS)" ] || { echo 'name them: make servers SERVERS="/path/to/redis-server /path/to/valkey-server"' >&2; exit 1; }
	@for server in $(abspath $(SERVERS)); do "$$server" --version && export ACCESSLIMIT_REDIS_SERVER="$$server" && \
	$(TEST) ./... || exit 1; done

long: ## run the longer proofs: many more traces, and 10 s of load from four processes for each algorithm (about an hour)
	ACCESSLIMIT_LONG=10s RAPID_CHECKS=1000 $(TEST) -timeout=60m ./internal/promise
	ACCESSLIMIT_LONG=10s $(TEST) -timeout=60m ./core/internal/algorithm
	cd examples/metrics && ACCESSLIMIT_LONG=10s $(TEST) -run TestSeries .
	ACCESSLIMIT_LONG=10s $(TEST) -run UnderLoad ./core/rulefile
	ACCESSLIMIT_LONG=10s $(TEST) -v -run TestOutgoing ./examples

flakes: ## run make TARGET (test unless given) N times (20), with empty and warm caches, alone and beside busy programs, and print what failed; goes on where it was
	@sh .ci/flakes $(or $(N),20) $(or $(FILE),flakes.tsv) $(or $(TARGET),test)

fuzz: redis ## run every fuzz target for FUZZTIME (10m unless given), one after the other; what fails is left in testdata/fuzz, to be committed
	sh .ci/fuzz $(FUZZTIME)

faketime: ## install faketime unless it is there (tests set a server's clock)
	@sh .ci/install faketime

REV         = cf426164
OPS         = 1000000
SEED        = 1

agree: redis ## play random histories on the commit REV and on the working tree, and compare what they show (10 minutes; OPS and SEED choose others)
	@sh internal/agree/run "$(REV)" "$(OPS)" "$(SEED)"

chaos: redis faketime prometheus ## do to real processes whatever can happen to a service, at length, and write what holds and the figures into internal/faults (about 20 minutes)
	cd internal/faults && ACCESSLIMIT_CHAOS=1 $(TEST) -timeout=60m -v .
	cd examples/metrics && ACCESSLIMIT_CHAOS=1 $(TEST) -v -run TestDrill .

NEWEST      = GOFLAGS="$$(go env GOFLAGS) -modfile=$(CURDIR)/.ci/newest.mod -tags=nomsgpack"

newest: redis ## run what touches a dependency, and count allocations, without the race detector and with the newest dependencies (.ci/*.mod)
	$(NEWEST) $(TEST) $(addprefix ./,$(ADAPTERS)) ./core/internal/redisstore ./core/rulefile/internal/filewatch
	$(NEWEST) RAPID_CHECKS=40 $(TEST) ./core ./core/operate $(addprefix ./core/internal/,algorithm localfirst memstore)
	@for name in $(basename $(notdir $(wildcard .ci/*limit.mod))); do (set -x; cd "$$name" && \
	GOFLAGS="$$(go env GOFLAGS) -modfile=$(CURDIR)/.ci/$$name.mod" $(TEST) .) || exit 1; done

newest-update: ## write .ci/*.mod anew from each go.mod and today's newest releases
	sh .ci/update-newest

pictures: ## draw bench/algorithms/*.svg anew, from real runs (half a minute)
	cd bench && go run ./pictures

bench: redis ## measure this library beside others, and write bench/results.tsv, RESULTS.md and the charts (about 11 minutes)
	cd bench && go run ./compare

bench-quick: redis ## the same in two minutes, with wider spreads
	cd bench && go run ./compare -quick
