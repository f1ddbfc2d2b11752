# Benchloom. 'make' or 'make help' lists what there is.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
export GOTOOLCHAIN := local

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GO_FILES := docs/glossary.md $(shell find cmd workflows activities workers starter api internal suites docs -path '*/node_modules' -prune -o \
	\( -name '*.go' -o -name '*.sql' -o -name '*.tmpl' -o -name '*.json' -o -name '*.html' -o -name '*.css' -o -name '*.js' \) -print 2>/dev/null)
SANDBOX_INIT := internal/sandboxinit/built/init-$(shell go env GOARCH)
TEMPORAL_FILES := $(filter-out %_test.go,$(wildcard deploy/temporal-dev/*.go)) deploy/temporal-dev/go.mod deploy/temporal-dev/go.sum scripts/build-temporal

GOLANGCI_LINT_VERSION := v2.14.0
GOVULNCHECK_VERSION := v1.8.0
WORKFLOWCHECK_VERSION := v0.6.0
BENCHSTAT_VERSION := v0.0.0-20260908200009-22c9c6c9d4da
TOOLS := bin/tools

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-zA-Z0-9_\/-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: bin/benchloom bin/temporal-dev ## build everything into bin/

bin/benchloom: go.mod go.sum $(GO_FILES) $(SANDBOX_INIT)
	go build -trimpath -ldflags "-X main.version=$(VERSION)" -o $@ ./cmd/benchloom

# Embedded in bin/benchloom. Without it, collectors take longer to start each command.
$(SANDBOX_INIT): go.mod go.sum $(filter-out %_test.go,$(wildcard internal/measure/*.go internal/sandboxinit/init/*.go))
	CGO_ENABLED=0 GOOS=linux go build -trimpath -ldflags "-s -w" -o $@ ./internal/sandboxinit/init

bin/temporal-dev: $(TEMPORAL_FILES)
	scripts/cached $@ "$$(go version; cat $(TEMPORAL_FILES) | git hash-object --stdin)" scripts/build-temporal $@

bin/versitygw: internal/blobs/testdata/versitygw/go.mod internal/blobs/testdata/versitygw/go.sum scripts/build-versitygw # an S3 server, for tests
	scripts/cached $@ "$$(go version; cat $^ | git hash-object --stdin)" scripts/build-versitygw $@

.PHONY: postgres
postgres: ## make sure that Postgres is installed
	@scripts/need-postgres

.PHONY: browser
browser: ## make sure that Chromium is installed, for the tests of pages
	@scripts/need-browser

.PHONY: axe
axe: ## fetch the accessibility checker, for the tests of pages
	@scripts/need-axe

.PHONY: up
up: build postgres ## start everything on this machine; Ctrl-C stops it
	bin/benchloom up

.PHONY: demo
demo: build postgres ## compare three Go releases on this machine (DEMO=full: everything, DEMO=rustc: Rust toolchains)
	scripts/demo "$(DEMO)"

.PHONY: test
test: build bin/versitygw postgres browser axe ## run the tests before each commit: the real Temporal, a real Postgres, a real toolchain
	scripts/test quick $(TESTFLAGS)

.PHONY: test-full
test-full: build postgres browser axe ## run the remaining tests, which take long: their names begin with TestLong
	scripts/test long $(TESTFLAGS)

.PHONY: fuzz
fuzz: postgres ## run every fuzz target for two minutes (FUZZTIME=20s; FUZZ=api: only targets that match)
	scripts/fuzz "$(FUZZ)"

.PHONY: cover
cover: build bin/versitygw postgres browser axe ## run all tests and print how many statements they cover; profiles in bin/cover
	scripts/cover

.PHONY: chaos
chaos: build postgres ## kill every process at every point of a job and of a look: 72 combinations, with benchmarks kept apart; and collectors at random times for five minutes
	BENCHLOOM_CHAOS=all BENCHLOOM_ISOLATION=$${BENCHLOOM_ISOLATION:-on} go test -count=1 -timeout 60m -parallel 4 -run 'TestLongChaos|TestLongVerdictsSurviveKilledProcesses|TestLongTurnsWhileCollectorsDie' ./internal/e2e

.PHONY: freeze
freeze: build postgres ## take away for ten minutes each what a measurement can do without
	BENCHLOOM_FREEZE=10m go test -count=1 -timeout 60m -parallel 4 -run '^TestLong.*EndsNoRun$$' ./internal/e2e

.PHONY: bench
bench: build postgres browser ## measure Benchloom itself, in Go's benchmark format
	@scripts/bench

.PHONY: bench-check
bench-check: build postgres browser ## fail when a limit of docs/benchmarks.md is broken
	@scripts/bench --check

.PHONY: bench-trust
bench-trust: build postgres ## try whether verdicts are right, with and without load: 80 trials; each start runs for 30 minutes and continues
	@scripts/bench-trust $(TRUSTFLAGS)

.PHONY: soak
soak: build postgres ## flood the API for 15 minutes at 200 connections, beside a collector that works (SOAKFLAGS='-duration 1m')
	@scripts/soak $(SOAKFLAGS)

.PHONY: soak-profiler
soak-profiler: ## run profiling agents for 20 minutes against a server that hangs, refuses, resets and fails in turn
	BENCHLOOM_PROFILER_SOAK=20m go test -count=1 -timeout 40m -v -run '^TestLongAServerThatFailsInEveryWay' ./internal/profiler

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## vet and lint
	go vet ./...
	$(TOOLS)/golangci-lint run ./...
	cd deploy/temporal-dev && go vet ./... && $(CURDIR)/$(TOOLS)/golangci-lint run ./...

.PHONY: workflowcheck
workflowcheck: $(TOOLS)/workflowcheck ## check that workflow code is deterministic
	$(TOOLS)/workflowcheck ./workflows/...

.PHONY: vulncheck
vulncheck: $(TOOLS)/govulncheck ## look for known vulnerabilities (VULNCHECK=required: fail without the database)
	@scripts/vulncheck $(CURDIR)/$(TOOLS)/govulncheck

.PHONY: hooks
hooks: ## have git check commit messages in this clone
	git config core.hooksPath .githooks

.PHONY: cross
cross: ## compile client and collector for other systems
	@for t in linux/arm64 darwin/arm64 windows/amd64; do \
		echo "compiling for $$t"; \
		CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} go build -o /dev/null ./cmd/benchloom; \
	done

.PHONY: generate
generate: ## write generated files anew: schema, golden files
	go test ./internal/suite ./internal/stats -run 'Schema|Golden' -update

.PHONY: histories
histories: build postgres ## record the histories of every workflow in every state, for replay tests; existing ones stay
	BENCHLOOM_RECORD_HISTORIES=$(CURDIR)/workflows/testdata/histories go test -count=1 -run 'TemporalRecordSpeaks|TestATrivialCommandHasAShortHistory|TestASharedJobIsTheChildOfOneRequest|TestCommitsOfARepositoryAreBenchmarked|TestABatchRunsInItsOrder|TestLongJobsFindTheirSizeClass|TestASuspicionIsDecidedInTurns|TestLongAFrozenTemporalEndsNoRun' ./internal/e2e
	cd workflows/testdata/histories && for f in *.json; do grep -q "  $$f$$" SHA256SUMS || sha256sum "$$f" >> SHA256SUMS; done

.PHONY: fmt
fmt: ## format the code
	gofmt -w $$(git ls-files '*.go')

.PHONY: clean
clean: ## remove what was built (not .benchloom, the state)
	rm -rf bin internal/sandboxinit/built/init-*

# A tool in a version, built once for all clones on this machine.
install = GOBIN=$(CURDIR)/$(TOOLS) scripts/cached $@ "$$(go version)" go install $(1) && touch $@

$(TOOLS)/golangci-lint: Makefile
	@echo "golangci-lint $(GOLANGCI_LINT_VERSION): building it takes a few minutes, once"
	$(call install,github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION))

$(TOOLS)/workflowcheck: Makefile
	$(call install,go.temporal.io/sdk/contrib/tools/workflowcheck@$(WORKFLOWCHECK_VERSION))

$(TOOLS)/govulncheck: Makefile
	$(call install,golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION))

$(TOOLS)/benchstat: Makefile
	$(call install,golang.org/x/perf/cmd/benchstat@$(BENCHSTAT_VERSION))
