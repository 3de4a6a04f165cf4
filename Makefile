# Almanac. `make` alone lists what there is to make.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GOLANGCI_VERSION := v2.15.0
GOLANGCI         := .tools/golangci-lint-$(GOLANGCI_VERSION)
GOVULN_VERSION   := v1.9.0
GOVULN           := .tools/govulncheck-$(GOVULN_VERSION)
# Where the database of vulnerabilities is.
VULNDB           ?= https://vuln.go.dev
# OpenTelemetry's own programs, for make inputs.
OTEL_VERSION     := 0.161.0
OTELCOL          := .tools/otelcol-inputs-$(OTEL_VERSION)/otelcol
TELEMETRYGEN     := .tools/telemetrygen-$(OTEL_VERSION)
# Prometheus' own program for rules and metrics, for make promtool: of the version whose parser the tests have.
PROMTOOL_VERSION  = $(shell go list -m -f '{{.Version}}' github.com/prometheus/prometheus)
PROMTOOL          = $(or $(shell command -v promtool),.tools/promtool-$(PROMTOOL_VERSION))
ENGINE_PACKAGE   := 26.7.3-stable.1

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

# What `make up` hands to almanac: make up ARGS='--ports auto --data /tmp/almanac'
ARGS     ?=
# Packages for test, bench, cover and fuzz.
PKG      ?= ./...
FUZZTIME ?= 10s
# How long make soak breaks things, and where its report goes. SEED, printed by each run of faults and soak, repeats it.
MINUTES  ?= 10
REPORT   ?= soak.md
SEED     ?=
# Rows that make usage looks for copies among.
HISTORY  ?= 10000000
# Seeds for simulate.
SEEDS    ?= 100000
# What bench-check compares.
BENCH_CHECK := end-to-end,log,disk
# Two test binaries at a time, each with a ClickHouse of its own: most tests wait, and so does the linker. Without what
# debuggers read, to link one of the hundred and some takes 3.2 s of CPU in place of 5.7. check has vetted all before.
TEST     := ALMANAC_REQUIRE_ENGINE=1 go test -p 2 -timeout 40m -vet=off -ldflags='-s -w'
# With the race detector a test of the whole costs twice the CPU: of ./integration make test runs those with many parts at
# once that way, and the others without it; make race runs all with it. The model is one goroutine a seed, which has no races.
WHOLE    := ./integration ./cmd/almanac ./integration/inputs ./integration/browser ./integration/console
RACED    := ^(TestJourney|TestTwins|TestRotation|TestCloseOnce|TestMeterPipeline|TestEraseWhileEventsFlow|TestDocumentsJourney|TestTimersLeave|TestKeyedRequestIsStoredOnce|TestSchemaGrowsWhileEventsFlow|TestFreshOverLostConnections|TestTailResumes)$$
# Of the faults make test runs those that take a minute and a half together, without the race detector, each part killed
# 10 times in place of 25, and prints what they measured; make faults runs all, in full.
KILLS    := ^(TestKillCycles|TestOracle|TestProxy|TestJournal|TestSet|TestTimes|TestPlan|TestReport)

.NOTPARALLEL:
.PHONY: tenants mutants hostile help setup need-engine need-compiler console build up test race check lint prose vulnerabilities reference fuzz bench bench-check bench-record bench-growth bench-load bench-compare bench-go faults cluster keyed timers damage backups console-sessions console-large signals usage series rights users soak simulate documents cover release release-check go-install install clean tidy backup-large logql logql-large console-shots

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 16

# What a fresh machine lacks: npm, which brings the engine, and a C compiler, which the race detector links with. Root on
# Debian gets the packages; others are told their names.
HAS_ENGINE = command -v clickhouse || [ -n "$${ALMANAC_LIBCHDB:-}$${ALMANAC_CLICKHOUSE:-}$(findstring --clickhouse,$(ARGS))" ] || compgen -G 'node_modules/@chdb/lib-*/libchdb.so'
need-engine:   HAS      = command -v npm || $(HAS_ENGINE)
need-engine:   PACKAGES = npm
need-compiler: HAS      = command -v "$$(go env CC)"
need-compiler: PACKAGES = gcc libc6-dev

need-engine need-compiler:
	@if { $(HAS); } >/dev/null; then exit 0; fi; \
	echo "this machine lacks: $(PACKAGES)" >&2; \
	if [ "$$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then echo "install them, then try again" >&2; exit 1; fi; \
	apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $(PACKAGES)

setup: need-engine node_modules/.package-lock.json ## Install the ClickHouse engine library below node_modules
	@if { $(HAS_ENGINE); } >/dev/null; then exit 0; fi; \
	printf '%s\n' \
	  'There is no ClickHouse engine for this machine yet. Any of these will do:' \
	  '  - a clickhouse program, 26.2 or later, on PATH' \
	  '  - a running ClickHouse: almanac up --clickhouse clickhouse://user:password@host:9000/database' \
	  '  - on another system, the engine library for it: npm install --no-save @chdb/lib-<system>-<arch>@$(ENGINE_PACKAGE)' >&2

# npm ci checks every package against the hash in the lock file; the library is for one system, so it is optional.
node_modules/.package-lock.json: package.json package-lock.json .npmrc
	@if ! command -v npm >/dev/null; then exit 0; fi; \
	if npm ci; then mkdir -p node_modules && touch $@; else $(HAS_ENGINE); fi

# The page is built where npm is. Elsewhere one that was built before stays, unless a source is newer: that would be asked by another
# API than it knows, and the binary says how to build it. npm ci checks each package against the lock file.
PAGE := internal/gateway/console/web
console: ## Build the page that almanac serves, into internal/gateway/console/dist; two builds give the same bytes
	@cd $(PAGE); \
	without() { \
	  if [ ! -e ../dist/index.html ]; then echo "console: $$1, so the binary will not have the page" >&2; \
	  elif [ -z "$$(find src build.mjs tsconfig.json package-lock.json -type f -newer ../dist/index.html)" ]; then echo "console: $$1; the page that was built before is of these sources, and stays" >&2; \
	  else find ../dist -type f ! -name placeholder.html -delete; \
	    echo "console: $$1, and the page that was built before is of older sources: it was removed, so the binary will not have the page" >&2; fi; \
	  exit 0; }; \
	if ! command -v npm >/dev/null; then without "no npm here"; fi; \
	if ! cmp -s package-lock.json node_modules/.installed; then \
	  npm ci || without "npm could not get the page's packages"; \
	  cp package-lock.json node_modules/.installed; \
	fi; \
	npm run --silent build

console-sessions: setup console ## Twenty random sessions of the page, each step compared with almanac query; ALMANAC_CONSOLE_SEED repeats some
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_CONSOLE_SESSIONS=20 go test -count 1 -v -timeout 120m -run 'TestPage$$/drive-sessions$$' ./integration/console

console-large: setup console ## The page over 10,000,000 rows, and a tail of ten minutes, each with its bar; needs 4 GiB of disk and a machine that does nothing else
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_CONSOLE_ROWS=10000000 ALMANAC_CONSOLE_TAIL_SECONDS=600 go test -count 1 -v -timeout 60m -run '^TestLarge$$' ./integration/console

SHOTS ?= dist/shots
console-shots: setup console ## Pictures of every page, in both themes and at three widths, into SHOTS; those of the README too
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_CONSOLE_SHOTS=$(abspath $(SHOTS)) go test -count 1 -v -timeout 60m -run 'TestShots$$' ./integration/console

build: console ## Build bin/almanac
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/almanac ./cmd/almanac

up: setup build ## Build and run everything in one process; flags go in ARGS='…'
	bin/almanac up $(ARGS)

test: need-compiler setup console check ## All tests against real servers: each package with the race detector, the whole without
	CGO_ENABLED=1 $(TEST) -parallel 4 -race $$(go list $(PKG) | grep -v -e /integration -e /cmd/almanac)
	CGO_ENABLED=1 $(TEST) -parallel 4 -race -run '$(RACED)' ./integration
	$(TEST) -parallel 6 -skip '$(RACED)' $(WHOLE) ./integration/model/...
	$(TEST) ./integration/cluster
	ALMANAC_KILL_CYCLES=10 $(TEST) -v -run '$(KILLS)' ./integration/faults
	cd deploy && go test ./... # a module of its own

race: need-compiler setup ## The tests of the whole with the race detector; half an hour
	CGO_ENABLED=1 $(TEST) -parallel 4 -race $(WHOLE)

check: ## The quick part of lint: formatting and go vet
	@unformatted=$$(gofmt -l $$(go list -f '{{.Dir}}' ./...)); \
	if [ -n "$$unformatted" ]; then echo "not formatted, run make tidy:" >&2; echo "$$unformatted" >&2; exit 1; fi
	go vet ./...
	cd bench/compare && go vet ./... # a module of its own
	cd deploy && go vet ./...

lint: check $(GOLANGCI) prose vulnerabilities ## All rules of .golangci.yml, the language of documents, and known vulnerabilities
	$(GOLANGCI) run ./...

vulnerabilities: $(GOVULN) ## Known vulnerabilities that this code can reach; fails where their database cannot be reached, unless LINT_OFFLINE=1
	@if reached=$$(curl -fsS --max-time 20 -o /dev/null '$(VULNDB)/index/db.json' 2>&1); then $(GOVULN) -db '$(VULNDB)' ./...; \
	else echo "vulnerabilities: not looked for: $(VULNDB) cannot be reached ($$reached)" >&2; \
	if [ "$(LINT_OFFLINE)" != 1 ]; then echo "try again, name another by VULNDB, or pass LINT_OFFLINE=1 to go on without" >&2; exit 1; fi; fi

reference: ## Write docs/reference.md, docs/metrics.md, the tables of SECURITY.md and the page's types, as the program declares them
	ALMANAC_WRITE=1 go test -count=1 ./internal/access -run TestSecurity
	ALMANAC_WRITE=1 go test -count=1 ./internal/ops/metrics -run TestDocument
	ALMANAC_WRITE=1 go test -count=1 ./cmd/almanac -run TestReference
	ALMANAC_WRITE=1 go test -count=1 ./internal/gateway/api -run TestTypesOfThePage

prose: ## Words a sentence in documents and doc.go, retired words, the map of DESIGN.md, and SQL that belongs into a file
	go run ./internal/lint/prose
	go run ./internal/lint/layout
	go run ./internal/lint/statements

# The packages that keep the promise and whose tests are quick; N and SEED repeat a draw.
PROMISE := ./schemas/checkpoint ./schemas/frame ./schemas/timer ./internal/reconcile ./internal/registry/ledger ./router ./sinks ./producer
N       ?= 200

mutants: setup ## N random changes of the packages that keep the promise: which does no test notice?
	go run ./internal/lint/mutants -n $(N) $(if $(SEED),-seed $(SEED)) -also ./integration/model $(PROMISE)

$(OTELCOL): integration/inputs/collector/builder.yaml
	cd integration/inputs/collector && go run go.opentelemetry.io/collector/cmd/builder@v$(OTEL_VERSION) --config builder.yaml

$(TELEMETRYGEN):
	GOBIN=$(CURDIR)/.tools go install github.com/open-telemetry/opentelemetry-collector-contrib/cmd/telemetrygen@v$(OTEL_VERSION)
	mv .tools/telemetrygen $@

$(GOVULN):
	GOBIN=$(CURDIR)/.tools go install golang.org/x/vuln/cmd/govulncheck@$(GOVULN_VERSION)
	mv .tools/govulncheck $@

$(GOLANGCI):
	GOBIN=$(CURDIR)/.tools go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv .tools/golangci-lint $@

.PHONY: promtool
promtool: setup ## What Prometheus' own promtool says of the rules, of their tests and of a scrape; where PATH has none it is built first, for minutes
	@test -e $(PROMTOOL) || { GOBIN=$(CURDIR)/.tools go install github.com/prometheus/prometheus/cmd/promtool@$(PROMTOOL_VERSION); mv .tools/promtool $(PROMTOOL); }
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_PROMTOOL=$(abspath $(PROMTOOL)) go test -count 1 -v -timeout 20m -run '^(TestPromtool|TestScrapeHasWhatIsNamed)$$' ./cmd/almanac

fuzz: ## Every fuzz target for FUZZTIME (default 10s)
	@for package in $$(go list $(PKG)); do \
	  for target in $$(go test -list '^Fuzz' "$$package" | grep '^Fuzz' || true); do \
	    echo "$$package $$target"; \
	    go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) "$$package"; \
	  done; \
	done

# The developers' figures (internal/bench/suite); users have almanac bench.
SUITE := go run ./internal/bench/suite

bench: setup build ## Every figure that has a bar, into bench/ too; 15 minutes on 2 cores that do nothing else
	$(SUITE) --write bench

bench-check: setup build ## The main ratios, short; fails when one fell by more than 20 % under bench/recorded.json. USERS=1: NATS has users; TLS=1: and TLS
	$(SUITE) --short --against bench/recorded.json $(if $(USERS),--users) $(if $(TLS),--tls)

bench-record: setup build ## Record the main ratios for bench-check
	$(SUITE) --short --only $(BENCH_CHECK) --record bench/recorded.json

bench-growth: setup build ## How costs grow with rows, shards, months, topics, lanes, producers, spaces; 6 minutes on 2 cores that do nothing else
	$(SUITE) --growth --write bench

bench-load: setup build ## What an event costs at steady loads; an hour and a half on 2 cores that do nothing else
	$(SUITE) --load --write bench

bench-compare: setup build ## The same events through what people use today (bench/compare); 5 minutes
	bench/compare/run.sh

bench-go: setup ## Every benchmark of the Go packages
	go test -p 1 -timeout 30m -run '^$$' -bench . -benchmem $(PKG)

timers: ## Timers under races, kills and lost answers, and their lateness, at full size
	ALMANAC_TIMERS=2000 ALMANAC_TIMERS_RACES=3000 ALMANAC_TIMERS_KILLED=5000 ALMANAC_TIMERS_KILLS=10 ALMANAC_TIMERS_FIGURES=10000 ALMANAC_TIMERS_PENDING=500000 \
		go test -v -parallel 1 -timeout 30m ./internal/timers/dispatch
	ALMANAC_TIMERS_KILLED=20000 ALMANAC_TIMERS_KILLS=25 go test -v -timeout 60m -run TestTimersUnderKills ./integration/faults
	ALMANAC_TIMERS_FROZEN=5000 ALMANAC_TIMERS_FREEZES=50 ALMANAC_TIMERS_FREEZE_SECONDS=10 go test -v -count 1 -timeout 60m -run '^TestTimersThroughFreezes$$' ./integration/faults
	ALMANAC_TIMERS_AWAY=5000 ALMANAC_TIMERS_AWAY_SECONDS=10 ALMANAC_TIMERS_ALONE=600 go test -v -count 1 -timeout 60m -run '^(TestTimersThroughOutages|TestTimerAlone)$$' ./integration/faults

.PHONY: alerts away
alerts: setup ## Each fault that an alert tells of, planted and repaired, with how long it took
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_ALERTS=1 go test -count 1 -v -timeout 30m -run '^(TestAlerts|TestUpOnAFullDisk)$$' ./cmd/almanac

away: setup ## What tells how Almanac is answers within 2 s while a server, or both, are gone or stand still
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_AWAY_TIMED=1 go test -count 1 -v -timeout 20m -run '^TestAway$$' ./cmd/almanac

documents: setup ## Documents at full size: a million of them, kills of every part, ClickHouse away, an erasure, a lost front
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_DOCUMENTS_WRITTEN=100000 ALMANAC_DOCUMENTS_KILLS=25 ALMANAC_DOCUMENTS_AWAY=10 $(if $(SEED),ALMANAC_FAULT_SEED=$(SEED)) \
	  go test -count 1 -timeout 60m -run '^TestDocuments' -v ./integration/faults
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_DOCUMENTS_KILLS=25 ALMANAC_DOCUMENTS_ERASED=10000 ALMANAC_DOCUMENTS_LOST=10000 \
	  go test -count 1 -timeout 60m -run '^(TestDocumentPromisesUnderKills|TestDocumentsUnderKills|TestEraseDocuments|TestRepairLostFront)$$' -v ./integration
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_DOCUMENTS=1000000 go test -count 1 -timeout 60m -run '^TestDocumentsAtSize$$' -v ./integration

keyed: setup ## Keyed requests through 200 kills, fields, erasures and restarts of NATS; SEED=n repeats a plan
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_KEYED_KILLS=200 $(if $(SEED),ALMANAC_FAULT_SEED=$(SEED)) go test -count 1 -timeout 5h -run '^TestKillCyclesOfErasedRequests$$' -v ./integration/faults

cluster: setup ## Three NATS servers that elect, each leader killed and frozen 25 times while events flow; an hour, on a machine that does nothing else
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_ELECTIONS=25 $(if $(SEED),ALMANAC_FAULT_SEED=$(SEED)) go test -count 1 -timeout 5h -v ./integration/cluster

faults: setup ## Real processes killed, stopped, cut and filled up; minutes, on a machine that does nothing else
	ALMANAC_REQUIRE_ENGINE=1 $(if $(SEED),ALMANAC_FAULT_SEED=$(SEED)) go test -count 1 -timeout 30m -v ./integration/faults
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_ERASE_POINTS=all go test -count 1 -timeout 10m -run '^TestEraseKilled$$' -v ./integration
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_REMOVALS=all go test -count 1 -timeout 10m -run '^TestRemovalOfTopicsAtWork$$' -v ./integration
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_REMOVAL_MONTHS=200 go test -count 1 -timeout 30m -run '^TestRemovalOfManyShards$$' -v ./integration
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_REMOVAL_KILLS=25 go test -count 1 -timeout 30m -run '^TestRemovalsUnderKills$$' -v ./cmd/almanac
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_SLOW_ENGINE_EVENTS=1000000 go test -count 1 -timeout 20m -run '^TestEngineAtATenth$$' -v ./integration
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_FAULTY_READS=all go test -count 1 -timeout 20m -run '^TestReadersAreCompleteOrFail$$' -v ./cmd/almanac
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_FAULTY_WRITES=all go test -count 1 -parallel 10 -timeout 30m -run '^TestWritersBehindFaultyLinks$$' -v ./integration
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_ALERT_KILLS=10 go test -count 1 -timeout 20m -run '^TestAlertsUnderKills$$|^TestAlertsWhileTheirLeaseMoves$$' -v ./cmd/almanac
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_MANY_RULES=1000 go test -count 1 -timeout 20m -run '^TestManyRules$$' -v ./internal/alerts/evaluate
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_KILLED_VERBS=200 go test -count 1 -timeout 120m -run '^TestKilledVerbs$$' -v ./cmd/almanac
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_PROVEN_FRAMES=260000 go test -count 1 -timeout 30m -run '^TestVerifyManyFrames$$' -v ./integration

rights: setup ## Each right of each NATS user taken away, and who lacks it says which: an hour, on a machine that does nothing else
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_REMOVED_RIGHTS=all go test -v -count 1 -timeout 180m -run '^TestRemovedRights' ./cmd/almanac

users: setup ## The tests of ./integration with a NATS that has users: half an hour; a right that is lacked fails them
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_NATS_USERS=1 $(TEST) -count 1 -parallel 6 ./integration

damage: setup ## Every stream, bucket, part and checkpoint damaged in every way at every time, into docs/damage.md; kills while shards move to a second disk
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_DAMAGE_TABLE='$(abspath docs/damage.md)' go test -count 1 -parallel 8 -timeout 30m -run '^TestDamageTable$$' -v ./integration
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_DAMAGE_PAIRS='$(abspath docs/damage.md)' go test -count 1 -parallel 8 -timeout 90m -run '^TestDamagePairs$$' -v ./integration
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_COLD_KILLS=20 go test -count 1 -timeout 20m -run '^TestColdMonthUnderKills$$' -v ./cmd/almanac

backups: setup ## Twenty backups while 10,000 events a second flow, each restored, with erasures and kills
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_BACKUPS=20 go test -count 1 -timeout 120m -run '^TestBackupWhileEventsFlow$$' -v ./cmd/almanac

backup-large: setup ## A backup of 10,000,000 rows, a second one with 1 % new, and the restore; needs 12 GiB of disk
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_BACKUP_LARGE=10000000 go test -count 1 -timeout 60m -run '^TestBackupLarge$$' -v ./cmd/almanac

signals: setup ## An up that gets 100 SIGTERM and 20 SIGHUP under load on all inputs
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_SIGNALS=100 go test -count 1 -timeout 60m -run '^TestSignalsUnderLoad$$' -v ./cmd/almanac

# The build that compat runs beside this one: a commit. By default the last tag, and as long as there is none the commit before this one.
COMPAT_BASE ?= $(shell git describe --tags --abbrev=0 2>/dev/null || git rev-parse --short HEAD~1)

.PHONY: compat
compat: setup ## The parts of another build (COMPAT_BASE, a commit) and of this one, replaced in every order under load
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; mkdir "$$dir/src"; git archive '$(COMPAT_BASE)' | tar x -C "$$dir/src"; \
	echo "beside $(COMPAT_BASE)"; (cd "$$dir/src" && CGO_ENABLED=0 go build -trimpath -o "$$dir/almanac" ./cmd/almanac); \
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_OTHER_BUILD="$$dir/almanac" go test -count 1 -timeout 60m -run '^(TestCompatible|TestAcrossFormats)' -v ./cmd/almanac

hostile: setup ## The worst known request of every route, all of them, and hostile clients in full: an hour
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_WORST=all ALMANAC_HOSTILE=all go test -count 1 -timeout 90m -run 'TestWorstRequests|TestBombs|TestHostileClients|TestPages|TestSlowReadersOfEveryRoute|TestWrongTokens' -v ./integration/inputs
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_HOSTILE=all go test -count 1 -timeout 10m -run '^TestReplacedWhileAClientSends$$' -v ./cmd/almanac

tenants: setup ## Two tenants of one topic by token: 10,000 random requests of the one, none of which shows the other
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_TENANT_REQUESTS=10000 $(if $(SEED),ALMANAC_TENANT_SEED=$(SEED)) go test -count 1 -timeout 30m -run '^TestTwoTenants$$' -v ./integration

logql: setup ## 300 random queries of LogQL for lines, and 300 for numbers, against their stages one event at a time, and as many over each real log
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_LOGQL=300 go test -count 1 -timeout 30m -run '^(TestLogQL|TestLogQLOverFiles)$$' -v ./integration

logql-large: setup ## What Grafana asks by Loki's API of a day with 10,000,000 rows, each with its bar; needs 4 GiB of disk and a machine that does nothing else
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_LOGQL_LARGE=10000000 go test -count 1 -timeout 30m -run '^TestLogQLLarge$$' -v ./cmd/almanac

usage: setup ## Bills of 10 million diffs, looks for copies among HISTORY rows, and bills while parts are killed, on a machine that does nothing else
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_USAGE_ROWS=10000000 ALMANAC_USAGE_ROUNDS=40 go test -count 1 -timeout 30m -run 'TestLarge|TestAnyOrder' -v ./query/usage
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_USAGE_HISTORY=$(HISTORY) ALMANAC_USAGE_RATE=10000 ALMANAC_USAGE_SECONDS=60 go test -count 1 -timeout 2h -run '^TestRepeatsKeepUp$$' -v ./query/usage
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_METER_KILLS=8 ALMANAC_METER_DIFFS=100 $(if $(SEED),ALMANAC_FAULT_SEED=$(SEED)) go test -count 1 -timeout 1h -run '^TestMetersUnderKills$$' -v ./integration/faults
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_USAGE_DIFFS=10000 go test -count 1 -timeout 10m -run '^TestMeterWriters$$' -v ./cmd/almanac

series: setup ## Answers over series and trails while parts are killed, and a real Prometheus for ten minutes where there is one
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_SERIES_KILLS=8 ALMANAC_TRAIL_KILLS=8 $(if $(SEED),ALMANAC_FAULT_SEED=$(SEED)) go test -count 1 -timeout 1h -run '^(TestSeriesUnderKills|TestTrailsUnderKills)$$' -v ./integration/faults
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_PROMETHEUS_MINUTES=10 go test -count 1 -timeout 30m -run '^TestPrometheus$$' -v ./integration/inputs

soak: setup ## All faults mixed for MINUTES (default 10); the report goes to REPORT (default soak.md); SEED=n repeats a plan
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_SOAK_MINUTES=$(MINUTES) ALMANAC_SOAK_REPORT='$(abspath $(REPORT))' $(if $(SEED),ALMANAC_FAULT_SEED=$(SEED)) \
	  go test -count 1 -timeout 0 -run '^TestSoak$$' -v ./integration/faults

inputs: setup $(OTELCOL) $(TELEMETRYGEN) ## Real clients of every input against almanac up; those that are absent are named and skipped
	cd integration/inputs/clients && npm install --no-package-lock --no-audit --no-fund --ignore-scripts
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_INPUT_CLIENTS=$(abspath integration/inputs/clients) ALMANAC_OTELCOL=$(abspath $(OTELCOL)) \
	ALMANAC_TELEMETRYGEN=$(abspath $(TELEMETRYGEN)) go test -count 1 -timeout 30m -v ./integration/inputs

simulate: ## The protocol's model, and those of repeats and sums and of keyed requests, for SEEDS seeds (default 100000): every fault, no server
	go test -count 1 -timeout 0 -run '^TestModel$$' -v ./integration/model -seeds $(SEEDS)
	ALMANAC_MODEL_SEEDS=$(SEEDS) go test -count 1 -timeout 0 -run '^TestDerived$$' -v ./integration/model/derived
	go test -count 1 -timeout 0 -run '^TestModel$$' -v ./integration/model/keyed -seeds $(SEEDS)

cover: setup ## Tests with coverage; the report is cover.out
	$(TEST) -coverprofile=cover.out -coverpkg=./... $(PKG)
	go tool cover -func=cover.out | tail -1

release: console ## Archives for linux and darwin with completion, man pages, licences, SBOM and checksums, into dist/
	go run ./internal/release -version '$(VERSION)' -o dist

release-check: console ## A release of every system, twice: the same bytes? Half an hour on 2 cores
	ALMANAC_RELEASE=linux/amd64,linux/arm64,darwin/amd64,darwin/arm64 go test -count 1 -timeout 2h -run '^TestReleaseTwice$$' -v ./internal/release

go-install: setup ## The program by go install of a version, from a proxy that has this commit: its version, without an engine and with one
	ALMANAC_REQUIRE_ENGINE=1 ALMANAC_GO_INSTALL=1 go test -count 1 -timeout 60m -run '^TestGoInstall$$' -v ./internal/release

# Where install puts things; DESTDIR is for those who make packages.
PREFIX  ?= /usr/local
DESTDIR ?=

install: build ## Put binary, engine, unit, completion and man pages below PREFIX (default /usr/local)
	install -D -m 755 bin/almanac '$(DESTDIR)$(PREFIX)/bin/almanac'
	install -d '$(DESTDIR)$(PREFIX)/lib/systemd/system'
	sed 's|/usr/local/bin/|$(PREFIX)/bin/|' deploy/systemd/almanac.service > '$(DESTDIR)$(PREFIX)/lib/systemd/system/almanac.service'
	install -d '$(DESTDIR)$(PREFIX)'/share/{bash-completion/completions,zsh/site-functions,fish/vendor_completions.d,man/man1}
	bin/almanac completion bash > '$(DESTDIR)$(PREFIX)/share/bash-completion/completions/almanac'
	bin/almanac completion zsh > '$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_almanac'
	bin/almanac completion fish > '$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/almanac.fish'
	bin/almanac man '$(DESTDIR)$(PREFIX)/share/man/man1'
	@engine=$$(compgen -G 'node_modules/@chdb/lib-*/libchdb.so' | head -1 || true); if [ -n "$$engine" ]; then \
	  install -D -m 644 "$$engine" '$(DESTDIR)$(PREFIX)/lib/almanac/libchdb.so'; else \
	  echo 'no engine is installed, as there is none below node_modules: run make setup and make install again, put a clickhouse program of 26.2 or later on the PATH of the unit, or set clickhouse in /etc/almanac/almanac.yaml' >&2; fi

clean: ## Remove what was built; the engine library and the tools stay
	rm -rf bin dist cover.out
	find internal/gateway/console/dist -type f ! -name placeholder.html -delete

tidy: ## Format the code and tidy go.mod
	gofmt -w $$(go list -f '{{.Dir}}' ./...)
	go mod tidy
