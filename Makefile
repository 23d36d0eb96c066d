# Every target with a comment after ## is listed by `make help`.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
FUZZTIME ?= 10s
# How many packages run at once, so that one is linked while another runs, and how many tests of
# each. Most tests wait, so there are more than cores. More at once would delay tests that bound
# real time.
PACKAGES ?= 2
PARALLEL ?= 8
# More flags for go test, as in: make test TESTFLAGS='-v -run TestLock'
TESTFLAGS ?=
# More flags for the benchmark, as in: make bench-short BENCHFLAGS='-scenario onekey64 -contestant
# holdfast'
BENCHFLAGS ?=

# The packages whose tests take longest begin first.
LONGEST := ./rlock ./redlock

# The packages with a promised coverage.
CORE := ./lua ./pubsub ./watchdog ./rlock ./multilock ./redlock
MIN_COVERAGE := 90

# Modules of their own, for what the library must not depend on. go.work has them all but bench,
# which needs newer versions than the library promises to work with.
MODULES := cmd/holdfast cmd/holdfastvet examples/fenced examples/gocron examples/observed goredis integration otel redissonyaml
# The packages of the library and of all these modules.
ALL := ./... $(MODULES:%=./%/...)
# Those whose tests play faults that last only seconds: nothing may be compiled beside them.
TIMED := ./... ./cmd/holdfast/... ./integration/...

# Code that users read or run, in which holdfastvet must find nothing.
EXEMPLARY := ./cmd/holdfast ./examples ./examples/fenced ./examples/gocron ./examples/observed

GOLANGCI_VERSION := v2.15.0
GOLANGCI := .tools/golangci-lint-$(GOLANGCI_VERSION)/golangci-lint
ACTIONLINT_VERSION := v1.7.12
ACTIONLINT := .tools/actionlint-$(ACTIONLINT_VERSION)/actionlint

# Those that are released, each with a tag of its own, and those of them that must compile for every
# system. The hosted workflow also runs their tests without a tag there.
RELEASED := $(filter-out examples/% integration,$(MODULES))
PORTABLE := ./... $(RELEASED:%=./%/...)

# What only a release needs. make release-tools installs it, which takes minutes.
GORELEASER_VERSION := v2.15.4
GORELEASER := .tools/goreleaser-$(GORELEASER_VERSION)/goreleaser
CYCLONEDX_VERSION := v1.10.0
CYCLONEDX := .tools/cyclonedx-gomod-$(CYCLONEDX_VERSION)/cyclonedx-gomod
GOVULNCHECK_VERSION := v1.9.0

# Leaves out what make lint checks, and what only debuggers need: a minute of the processor's time.
quick = -vet=off -ldflags=-w

# Without the race detector: one package at a time, which has the processor to itself.
light = -p 1 -timeout 20m -parallel $(PARALLEL)

# The names of the tests in some files, for go test -run.
names = ^($$(sed -n 's/^func \(Test[A-Za-z0-9]*\)(.*/\1/p' $(1) | paste -sd '|' -))$$

# Builds the tests' Redisson and the example in Java, unless they are there.
with-peer = HOLDFAST_REDISSON_CLASSPATH=$$(integration/redisson/build.sh); export HOLDFAST_REDISSON_CLASSPATH; \
	HOLDFAST_SHOP_CLASSPATH=$$(integration/redisson/build.sh examples/shop/java); export HOLDFAST_SHOP_CLASSPATH

# Installs a Redis server if there is none and the user is root.
with-server = internal/redistest/ensure-server.sh

# Installs a PostgreSQL in the same way. Without one, the test that needs it fails and says so.
with-postgres = examples/fenced/ensure-postgres.sh || true

# Builds the tests' Redisson if there is Maven, and sets $$tags to what go test needs to run them.
with-peer-if-any = tags=redis; \
	if command -v mvn >/dev/null && command -v javac >/dev/null; then \
		$(with-peer); tags=redis,interop; \
	else \
		echo "make $@: no Maven with a JDK, so the tests beside Redisson are left out; make interop installs them" >&2; \
	fi

# How long make chaos runs, and from which seed it draws. A number repeats a run. With SEED=new it
# runs half of the time with seed 1; with SEED= it does what make test does.
SECONDS ?= 120
SEED ?= new
SCENARIO ?=

.PHONY: help demo test nightly tagged dashboard containers image rapid interop chaos model compat lint fmt module bench bench-short cover fuzz mutants tools compiler \
	vulncheck apidiff release-tools release-dry-run release release-tags

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## see locks at work; needs nothing but Go
	@$(GO) run ./cmd/holdfast demo

# The tests of the alert rules need promtool. Without it they are left out, as .ci/run notices.
# Behind the others run those that mostly wait, beside Redisson, and those in virtual time, which no
# load can disturb. The race detector would distort the latter. At last come counts of allocations.
test: compiler ## run the tests on a real Redis under the race detector, with Redisson if there is Maven
	@$(with-server); $(with-postgres); $(with-peer-if-any); failed=0; \
	run() { $(GO) test -race $(quick) -tags $$tags -timeout 20m -p $(PACKAGES) -parallel $(PARALLEL) $(TESTFLAGS) "$$@"; }; \
	behind() { \
		local failed=0; \
		[[ $$tags != *interop ]] || run ./integration/redisson || failed=1; \
		$(GO) test ./... || failed=1; \
		$(GO) test $(quick) $(TESTFLAGS) ./integration/chaos || failed=1; \
		return $$failed; \
	}; \
	output=$$(mktemp); behind >$$output 2>&1 & \
	run $(LONGEST) $$($(GO) list $(TIMED) | grep -v '/integration/redisson$$') || failed=1; \
	! otel/dashboard/ensure-prometheus.sh >/dev/null || run ./otel/dashboard || failed=1; \
	run $$($(GO) list $(filter-out $(TIMED),$(ALL)) | grep -v '/otel/dashboard$$') || failed=1; \
	(cd bench && GOWORK=off run ./...) || failed=1; \
	wait $$! || failed=1; cat $$output; rm $$output; \
	files=$$(grep -rl '^//go:build redis && !race' --include='*_test.go' .); \
	$(GO) test -tags redis $(light) $(quick) $(TESTFLAGS) -run "$(call names,$$files)" $$(dirname $$files | sort -u) || failed=1; \
	exit $$failed

nightly: tagged dashboard containers image rapid ## run what takes long: tests with the tag nightly, containers, random programs

tagged:
	@files=$$(grep -rlE '^//go:build (.*[ (])?nightly' --include='*_test.go' integration rlock multilock redlock); \
	$(with-server); $(GO) test -tags redis,nightly $(light) $(quick) $(TESTFLAGS) -run "$(call names,$$files)" $$(dirname $$files | sort -u)

# Each query of docs/monitoring has data, and each alert fires, under a Prometheus while things fail.
dashboard: compiler
	@otel/dashboard/ensure-prometheus.sh >/dev/null; $(with-server); \
	$(GO) test -race -tags redis,nightly -count=1 -timeout 20m $(TESTFLAGS) ./otel/dashboard

# All topologies with servers in containers. It starts a Docker engine if there is none.
containers: compiler
	@trap 'integration/containers/ensure-docker.sh stop' EXIT; exports=$$(integration/containers/ensure-docker.sh); eval "$$exports"; \
	$(GO) test -race -tags redis -timeout 10m -parallel $(PARALLEL) $(TESTFLAGS) ./integration

# The image of the Dockerfile, built without a registry. It starts a Docker engine if there is none.
image:
	@trap 'integration/containers/ensure-docker.sh stop' EXIT; integration/containers/ensure-docker.sh >/dev/null; \
	$(GO) test $(quick) -tags containers -count=1 -timeout 10m $(TESTFLAGS) ./integration/image

# Each model in Go, compared with more programs, from a new seed.
rapid:
	@$(with-server); \
	$(GO) test -tags redis -count=1 -p 1 -timeout 60m $(TESTFLAGS) -run Model ./lua ./internal/waitqueue -rapid.seed=0 -rapid.checks=2000

# Releases of integration/redisson/releases.txt, or all; empty for the newest one.
VERSIONS ?=
interop: compiler ## run the tests beside Redisson, in Java; VERSIONS='3.13.6 3.27.2', or all, chooses releases
	@$(with-server); \
	if [[ -n '$(VERSIONS)' ]]; then \
		GO='$(GO)' GOTESTFLAGS='-parallel $(PARALLEL) $(TESTFLAGS)' integration/redisson/matrix.sh $(filter-out all,$(VERSIONS)); \
	else \
		$(with-peer); $(GO) test -race -tags redis,interop -timeout 10m -parallel $(PARALLEL) $(TESTFLAGS) ./integration/redisson ./examples/shop; \
	fi

chaos: compiler ## let networks, processes and servers fail for SECONDS (120), drawn from SEED; then in virtual time for as many minutes
	@$(with-server); export HOLDFAST_CHAOS_SEED=$(SEED) HOLDFAST_CHAOS_SCENARIO='$(SCENARIO)'; \
	play() { HOLDFAST_CHAOS_TIME=$(SECONDS)$$1 $(GO) test $$2 -tags redis -count=1 -timeout $$(($(SECONDS) * 3 + 300))s -v $(TESTFLAGS) -run $$3 ./integration/chaos; }; \
	play s -race TestLocksKeepTheirPromisesWhateverFails && play m '' TestLocksKeepTheirPromisesInVirtualTime

# QUICK=1 leaves out the proof that each rule is needed, the largest configurations, and most traces.
# EVERY=1 adds that each counterexample is due to the rule that was left out: it takes twice as long.
# The race detector would only slow down tests of one goroutine each.
QUICK ?=
EVERY ?=
LARGE := ModelsHold/all/(HandOver|HandOver.local|LocalTurns|RedLock.rejoin|Lease.two|Lease.late|ReadWrite|ReadWrite.levels).cfg
LEFT_OUT := $(if $(EVERY),,RulesSuffice|)$(if $(QUICK),EveryRuleIsNeeded|$(LARGE)|)^$$
model: ## check the models in TLA+, and play traces of hand-overs against the code; finds or installs Java
	@HOLDFAST_TLC=$$(integration/model/ensure-tlc.sh); export HOLDFAST_TLC; $(with-server); \
	$(GO) test $(quick) -tags redis,model -count=1 -timeout 30m -parallel 2 -v $(TESTFLAGS) $(if $(QUICK),-short) -skip '$(LEFT_OUT)' ./integration/model

# Names of internal/servers/servers.txt; empty for all of them.
SERVERS ?=
compat: ## run the tests that depend on the server on other versions and makes, fetched into .tools
	@integration/compat/all.sh $(SERVERS)

# golangci-lint has all checks of staticcheck's command.
lint: $(GOLANGCI) $(ACTIONLINT) ## check formatting, go vet, golangci-lint with staticcheck, prose, workflows, go.mod, the module graph
	@unformatted=$$(gofmt -l .); if [[ -n $$unformatted ]]; then echo "make fmt would change:" $$unformatted >&2; exit 1; fi
	! grep -rnE '^(<{7}|>{7}) ' --include='*.md' --exclude-dir=.tools --exclude-dir=vendor . # conflict markers
	$(GO) vet ./... # without tags, as go test ./... compiles it
	$(GO) vet -tags redis,interop,model,nightly,containers $(ALL)
	cd bench && GOWORK=off $(GO) vet ./...
	tool=$$(mktemp); trap 'rm "$$tool"' EXIT; $(GO) build -o "$$tool" ./cmd/holdfastvet; \
	GOGC=400 $(GO) vet -vettool="$$tool" $(addsuffix /...,$(EXEMPLARY))
	$(GOLANGCI) run $(ALL)
	GOOS=windows $(GO) vet $(PORTABLE) # the system that differs most
	$(GO) run ./internal/prose
	$(ACTIONLINT)
	for module in bench $(MODULES); do grep -qx "      - /$$module" .github/dependabot.yml || \
		{ echo ".github/dependabot.yml lacks /$$module" >&2; exit 1; }; done
	for module in . bench $(MODULES); do (cd $$module && GOWORK=off $(GO) mod tidy -diff); done
	internal/consumer-graph.sh 20

fmt: $(GOLANGCI) ## format the Go code and its imports
	$(GOLANGCI) fmt $(ALL)

# PATH on the command line replaces the one in which commands are found, in the recipe. Only the
# environment in which make itself was started has that.
search-path = $(shell if [[ -r /proc/$$PPID/environ ]]; then \
	while IFS= read -r -d '' v; do [[ $$v != PATH=* ]] || echo "$${v:5}"; done </proc/$$PPID/environ; \
	else echo "$$PATH"; fi)

module: ## rename the module: make module PATH=example.com/you/holdfast
	@$(if $(filter command,$(origin PATH)),,echo "make module: want PATH=example.com/you/holdfast" >&2; exit 2;) \
	export PATH='$(search-path)'; GO='$(GO)' internal/rename-module.sh '$(PATH)'

bench: ## compare with the floor and with other libraries; draws bench/plots (see bench/README.md)
	@cd bench && GOWORK=off $(GO) run . -as 'make bench' -json results.json -markdown results.md -plots plots $(BENCHFLAGS)

bench-short: ## the same in less than three minutes: fewer and shorter rounds, nothing is written
	@cd bench && GOWORK=off $(GO) run . -as 'make bench-short' -short $(BENCHFLAGS)

mutants: ## make 301 small changes of the library, one at a time, and see which the tests notice (hours)
	@$(with-server); $(GO) run ./internal/mutants -tests redis -results .tools/mutants/now.txt -compare internal/mutants/results.txt

cover: ## show the statement coverage of the core packages; fails below 90 %
	@$(with-server); \
	$(GO) test -tags redis $(light) -coverprofile coverage.out -coverpkg $$($(GO) list $(CORE) | paste -sd, -) $(TESTFLAGS) $(CORE)
	@awk -v minimum=$(MIN_COVERAGE) -v packages="$$($(GO) list $(CORE))" -f internal/coverage.awk coverage.out

fuzz: ## run each fuzz target for FUZZTIME (default 10s)
	@$(with-server); \
	for dir in $$($(GO) list -f '{{.Dir}}' $(ALL)); do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$$dir"/*_test.go 2>/dev/null || true); do \
			echo "$$dir $$target"; \
			$(GO) test -tags redis -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir"; \
		done; \
	done

# All that comes over the network and that .ci/run needs, so that it can be fetched again if it fails.
tools: $(GOLANGCI) $(ACTIONLINT) compiler
	$(GO) list -deps -test -tags redis,interop,model,nightly $(ALL) >/dev/null
	for module in . bench $(MODULES); do (cd $$module && GOWORK=off $(GO) mod download); done
	$(with-server); $(with-postgres); otel/dashboard/ensure-prometheus.sh; integration/model/ensure-tlc.sh; $(with-peer)
	for version in $(VERSIONS); do HOLDFAST_REDISSON=$$version integration/redisson/build.sh; done
	integration/compat/servers.sh $(SERVERS)

# It asks https://vuln.go.dev.
vulncheck: ## look for known vulnerabilities in what the modules call; needs the network
	@failed=0; for module in . bench $(MODULES); do echo "$$module:"; \
		(cd $$module && GOWORK=off $(GO) run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) -test ./...) || failed=1; \
	done; exit $$failed

BASE ?=
apidiff: ## compare the exported API with the last release; BASE=commit compares with that
	@GO='$(GO)' BASE='$(BASE)' internal/apidiff.sh . $(filter-out cmd/%,$(RELEASED))

release-tools: $(GORELEASER) $(CYCLONEDX) ## install what release-dry-run needs into .tools (minutes)

release-dry-run: release-tools ## build a release of HEAD into dist, test what it consists of, publish nothing
	@GO='$(GO)' GORELEASER='$(CURDIR)/$(GORELEASER)' CYCLONEDX='$(CURDIR)/$(CYCLONEDX)' internal/release-dry-run.sh $(RELEASED)

release: release-tools
	PATH="$(CURDIR)/$(dir $(CYCLONEDX)):$$PATH" $(GORELEASER) release --clean

release-tags: ## tag HEAD and all modules with VERSION, as in VERSION=v0.1.0; pushes nothing
	@GO='$(GO)' internal/release-tags.sh '$(VERSION)' $(RELEASED)

# The race detector links against C.
compiler:
	@if ! command -v $$($(GO) env CC) >/dev/null; then \
		if command -v apt-get >/dev/null && ((EUID == 0)); then \
			echo "installing gcc for the race detector" >&2; \
			apt-get -qq -o Acquire::Retries=3 update >&2 || true; \
			DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 install -y --no-install-recommends gcc libc6-dev >&2; \
		else \
			echo "the race detector needs a C compiler: install gcc, or run go test ./..., which needs neither" >&2; exit 1; \
		fi; \
	fi

$(GOLANGCI):
	GOBIN=$(CURDIR)/$(@D) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

$(ACTIONLINT):
	GOBIN=$(CURDIR)/$(@D) $(GO) install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)

$(GORELEASER):
	GOBIN=$(CURDIR)/$(@D) $(GO) install github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)

$(CYCLONEDX):
	GOBIN=$(CURDIR)/$(@D) $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX_VERSION)
