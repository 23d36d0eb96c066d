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

# Which tests of ./integration test-containers runs.
CONTAINERS ?= .

# The packages whose tests take longest begin first.
LONGEST := ./rlock ./redlock

# The packages with a promised coverage.
CORE := ./lua ./pubsub ./watchdog ./rlock ./multilock ./redlock
MIN_COVERAGE := 90

# Modules of their own, for what the library must not depend on. go.work has them all but bench,
# which needs newer versions than the library promises to work with.
MODULES := cmd/holdfast cmd/holdfastvet examples/gocron examples/observed integration otel redissonyaml
# The packages of the library and of all these modules.
ALL := ./... $(MODULES:%=./%/...)
# Those whose tests play faults that last only seconds: nothing may be compiled beside them.
TIMED := ./... ./cmd/holdfast/... ./integration/...

# Code that users read or run, in which holdfastvet must find nothing.
EXEMPLARY := ./cmd/holdfast ./examples ./examples/gocron ./examples/observed

GOLANGCI_VERSION := v2.15.0
GOLANGCI := .tools/golangci-lint-$(GOLANGCI_VERSION)/golangci-lint

# Leaves out what make lint checks, and what only debuggers need: a minute of the processor's time.
quick = -vet=off -ldflags=-w

# Without the race detector, for a profile or a quick run: one package at a time, which has the
# processor to itself.
light = -p 1 -timeout 20m -parallel $(PARALLEL)

# Makes a test run write a profile of the statements that it covered.
profile = -coverprofile $(1) -coverpkg $$($(GO) list $(CORE) | paste -sd, -)

# Builds the tests' Redisson and the example in Java, unless they are there.
with-peer = HOLDFAST_REDISSON_CLASSPATH=$$(integration/redisson/build.sh); export HOLDFAST_REDISSON_CLASSPATH; \
	HOLDFAST_SHOP_CLASSPATH=$$(integration/redisson/build.sh examples/shop/java); export HOLDFAST_SHOP_CLASSPATH

# Installs a Redis server if there is none and the user is root.
with-server = internal/redistest/ensure-server.sh

# Builds the tests' Redisson if there is Maven, and sets $$tags to what go test needs to run them.
with-peer-if-any = tags=redis; \
	if command -v mvn >/dev/null && command -v javac >/dev/null; then \
		$(with-peer); tags=redis,interop; \
	else \
		echo "make $@: no Maven with a JDK, so the tests beside Redisson are left out; make test-interop installs them" >&2; \
	fi

# How long make chaos and make random run, and from which seed they draw. A number repeats a run.
# With SEED=new, make chaos runs half of the time with seed 1; with SEED= it does what make test
# does.
SECONDS ?= 120
SEED ?= new
SCENARIO ?=
# How many programs of each model make rapid runs.
CHECKS ?= 2000

# Random tests that could run for ever, other than chaos and rapid. make test runs each for
# seconds.
RANDOM_TESTS := NoTwoHoldsAreValidAtOnce|TokensIncreaseOverAll|WriterGetsInAmongFifty|ReadersProgressAmongFour
RANDOM_TESTS := $(RANDOM_TESTS)|TwoClientsThatRace|DiningPhilosophers|NoUpdateIsLost
# Tests that draw programs with pgregory.net/rapid.
MODELS := Model

.PHONY: help demo dashboard test test-norace test-nightly test-containers test-interop interop-matrix chaos random rapid model model-states model-traces compat lint golangci vet fetch fmt module bench bench-short bench-packages cover covered fuzz mutants compiler

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## see locks at work; needs nothing but Go
	@$(GO) run ./cmd/holdfast demo

# The tests of the alert rules need promtool. Without it they are left out, as .ci/run notices.
# They run in parallel with the tests beside Redisson, since both mostly wait.
test: compiler ## run all tests on a real Redis under the race detector, with Redisson if there is Maven
	@$(with-server); $(with-peer-if-any); \
	run() { $(GO) test -race $(quick) -tags $$tags -timeout 20m -p $(PACKAGES) -parallel $(PARALLEL) $(TESTFLAGS) "$$@"; }; \
	failed=0; \
	run $(if $(COVER),$(call profile,coverage.out)) $(LONGEST) $$($(GO) list $(TIMED) | grep -v '/integration/redisson$$') || failed=1; \
	redisson=; if [[ $$tags == *interop ]]; then redisson=$$(mktemp); run ./integration/redisson >$$redisson 2>&1 & fi; \
	! otel/dashboard/ensure-prometheus.sh >/dev/null || run ./otel/dashboard || failed=1; \
	run $$($(GO) list $(filter-out $(TIMED),$(ALL)) | grep -v '/otel/dashboard$$') || failed=1; \
	(cd bench && GOWORK=off run ./...) || failed=1; \
	if [[ -n $$redisson ]]; then wait $$! || failed=1; cat $$redisson; rm $$redisson; fi; \
	exit $$failed

# They take long and change seldom. GitHub runs them every night.
test-nightly: ## run only the tests that are built with the tag nightly
	@files=$$(grep -rlE '^//go:build (.*[ (])?nightly' --include='*_test.go' integration rlock multilock redlock); \
	names=$$(sed -n 's/^func \(Test[A-Za-z0-9]*\)(.*/\1/p' $$files | paste -sd '|' -); \
	$(with-server); $(GO) test -tags redis,nightly $(light) $(quick) $(TESTFLAGS) -run "^($$names)$$" $$(dirname $$files | sort -u)

test-containers: compiler ## run tests of all topologies with servers in containers; starts a Docker engine if it must
	@trap 'integration/containers/ensure-docker.sh stop' EXIT; exports=$$(integration/containers/ensure-docker.sh); eval "$$exports"; \
	$(GO) test -race -tags redis -timeout 10m -parallel $(PARALLEL) $(TESTFLAGS) -run '$(CONTAINERS)' ./integration

# The race detector allocates memory, shuffles which goroutine runs next, and slows down Lua in Go.
test-norace: ## run only the tests that are built without the race detector
	@files=$$(grep -rl '^//go:build.*!race' --include='*_test.go' .); \
	names=$$(sed -n 's/^func \(Test[A-Za-z0-9]*\)(.*/\1/p' $$files | paste -sd '|' -); \
	$(with-server); $(GO) test -tags redis $(light) $(quick) $(TESTFLAGS) -run "^($$names)$$" $$(dirname $$files | sort -u)

test-interop: compiler ## run the tests and the example beside Redisson, in Java; builds it with Maven
	@$(with-peer); $(with-server); $(GO) test -race -tags redis,interop -timeout 10m -parallel $(PARALLEL) $(TESTFLAGS) ./integration/redisson ./examples/shop

# Releases of integration/redisson/releases.txt; empty for all of them.
VERSIONS ?=
interop-matrix: compiler ## run the tests beside each Redisson of VERSIONS, by default from 3.13 to 4.7
	@$(with-server); \
	GO='$(GO)' GOTESTFLAGS='-parallel $(PARALLEL) $(TESTFLAGS)' integration/redisson/matrix.sh $(VERSIONS)

chaos: compiler ## let networks, processes and servers fail for SECONDS (120), drawn from SEED
	@$(with-server); HOLDFAST_CHAOS_TIME=$(SECONDS)s HOLDFAST_CHAOS_SEED=$(SEED) HOLDFAST_CHAOS_SCENARIO='$(SCENARIO)' \
	$(GO) test -race -tags redis -count=1 -timeout $$(($(SECONDS) * 3 + 300))s -v $(TESTFLAGS) -run TestLocksKeepTheirPromisesWhateverFails ./integration/chaos

random: compiler ## run the random tests for SECONDS (120), drawn from SEED: stress, races, tokens, soak beside Redisson
	@$(with-server); $(with-peer-if-any); \
	each=$$(($(SECONDS) / 6 + 1)); \
	export HOLDFAST_STRESS_TIME=$${each}s HOLDFAST_MIX_TIME=$$((each / 4 + 1))s HOLDFAST_PHILOSOPHERS_TIME=$${each}s \
		HOLDFAST_INTEROP_TIME=$${each}s HOLDFAST_FENCED_ACQUISITIONS=$$((each * 600)) HOLDFAST_REDLOCK_ROUNDS=$$((each * 100)); \
	for test in STRESS FENCED PHILOSOPHERS INTEROP; do export HOLDFAST_$${test}_SEED=$(SEED); done; \
	$(GO) test -race -tags $$tags -count=1 -p 1 -timeout $$(($(SECONDS) * 3 + 300))s -parallel $(PARALLEL) -v $(TESTFLAGS) \
		-run '$(RANDOM_TESTS)' ./rlock ./redlock ./multilock $$([[ $$tags != *interop ]] || echo ./integration/redisson)

rapid: ## compare each model in Go with CHECKS (2000) programs, drawn from SEED
	@$(with-server); \
	$(GO) test -tags redis -count=1 -p 1 -timeout 60m $(TESTFLAGS) -run '$(MODELS)' ./lua ./rlock ./redlock \
		-rapid.seed=$(SEED:new=0) -rapid.checks=$(CHECKS)

# The race detector would only slow down tests of one goroutine each. With EVERY=1 it also checks
# that each counterexample is due to the rule that was left out, which takes as long as all else.
EVERY ?=
STATES := ModelsHold|EveryRuleIsNeeded|RulesSuffice
# LARGE= leaves out these, which take a third of the time.
LARGE := yes
LEFT_OUT = $(if $(LARGE),,|ModelsHold/all/(HandOver.local|RedLock.rejoin|Lease.two|ReadWrite.levels).cfg)
with-tlc = HOLDFAST_TLC=$$(integration/model/ensure-tlc.sh); export HOLDFAST_TLC; \
	test-model() { $(GO) test $(quick) -tags redis,model -count=1 -timeout 30m -v "$$@" $(TESTFLAGS); }
model: model-states model-traces ## check the models in TLA+, in all their states, and play traces of hand-overs against the code; finds or installs Java

model-states:
	@$(with-tlc); test-model -parallel 2 -run '$(STATES)' -skip '$(if $(EVERY),^$$,RulesSuffice)$(LEFT_OUT)' ./integration/model

model-traces:
	@$(with-tlc); $(with-server); test-model -parallel 4 -skip '$(STATES)' ./integration/model

# Names of internal/servers/servers.txt; empty for all of them.
SERVERS ?=
compat: ## run the tests that depend on the server on other versions and makes, fetched into .tools; RESP2; managed services
	@integration/compat/all.sh $(SERVERS)

dashboard: compiler ## test docs/monitoring with Prometheus while things fail: each query has data, each alert fires
	@otel/dashboard/ensure-prometheus.sh >/dev/null; $(with-server); \
	$(GO) test -race -tags redis,nightly -count=1 -timeout 20m -v $(TESTFLAGS) ./otel/dashboard

# Two at a time, because each uses one processor for most of its time.
lint: ## check formatting, go vet, golangci-lint with staticcheck, go.mod
	@$(MAKE) --no-print-directory -j 2 --output-sync=recurse golangci vet

# It has all checks of staticcheck's command, which would load and check everything once more.
golangci: $(GOLANGCI)
	$(GOLANGCI) run $(ALL)

vet:
	@unformatted=$$(gofmt -l .); if [[ -n $$unformatted ]]; then echo "make fmt would change:" $$unformatted >&2; exit 1; fi
	! grep -rnE '^(<{7}|>{7}) ' --include='*.md' --exclude-dir=.tools --exclude-dir=vendor . # conflict markers
	$(GO) vet ./... # without tags, as go test ./... compiles it
	$(GO) vet -tags redis,interop,model,nightly $(ALL)
	cd bench && GOWORK=off $(GO) vet ./...
	tool=$$(mktemp); trap 'rm "$$tool"' EXIT; $(GO) build -o "$$tool" ./cmd/holdfastvet; \
	GOGC=400 $(GO) vet -vettool="$$tool" $(addsuffix /...,$(EXEMPLARY))
	$(tidy)

tidy = for module in . bench $(MODULES); do (cd $$module && GOWORK=off $(GO) mod tidy -diff); done

fetch: $(GOLANGCI) ## download what the other targets need from the Go module proxy
	$(tidy)
	$(GO) list -deps -test -tags redis,interop,model,nightly $(ALL) >/dev/null

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

bench-short: ## the same in less than two minutes: fewer and shorter rounds, nothing is written
	@cd bench && GOWORK=off $(GO) run . -as 'make bench-short' -short $(BENCHFLAGS)

bench-packages: ## run the benchmarks of the packages
	@$(with-server); $(GO) test -tags redis -run '^$$' -bench . -benchmem $(TESTFLAGS) ./...

mutants: ## make 296 small changes of the library, one at a time, and see which the tests notice (hours)
	@$(with-server); $(GO) run ./internal/mutants -tests redis -results .tools/mutants/now.txt -compare internal/mutants/results.txt

cover: ## show the statement coverage of the core packages; fails below 90 %
	@$(with-server); $(GO) test -tags redis $(light) $(call profile,coverage.out) $(TESTFLAGS) $(CORE)
	@$(MAKE) --no-print-directory covered

covered: ## the same for the last run of make test COVER=1
	@awk -v minimum=$(MIN_COVERAGE) -v packages="$$($(GO) list $(CORE))" -f internal/coverage.awk coverage.out

fuzz: ## run each fuzz target for FUZZTIME (default 10s)
	@$(with-server); \
	for dir in $$($(GO) list -f '{{.Dir}}' $(ALL)); do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$$dir"/*_test.go 2>/dev/null || true); do \
			echo "$$dir $$target"; \
			$(GO) test -tags redis -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir"; \
		done; \
	done

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
