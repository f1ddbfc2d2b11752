package pages

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/suite"
)

// gatewaySuite has benchmarks that print what their artifact says that it needs, so that
// what pages show of them depends little on the machine.
const gatewaySuite = `name: gateway
description: a web gateway, release by release
artifact: {provider: directory, parameters: {path: "%s/{tag}"}}
metrics: {exact: [allocs/op]}
iterations: 5
procedures:
  runtime:
    measure: {run: [sh, "${suite}/measure.sh", "${artifact}/${benchmark}"], output: benchfmt, record: output}
    profilers:
      stacks: {run: [sh, "${suite}/stacks.sh", "${artifact}/${benchmark}", "${profile_file}"], format: folded}
benchmarks:
  - {name: parse, kind: runtime}
  - {name: route, kind: runtime}
  - {name: render, kind: runtime, category: secondary}
  - {name: compress, kind: runtime}
`

// gatewayBenchmarks lists the suite's benchmarks in the order of the columns below.
var gatewayBenchmarks = []string{"parse", "route", "render", "compress"}

// measureScript prints nanoseconds, which vary a little, and allocations.
const measureScript = `[ -e "$1" ] || { echo "$(basename "$1"): level 9 needs a dictionary, and there is none" >&2; exit 3; }
read -r time allocations <"$1"
[ "$time" != long ] || sleep 900
echo "BenchmarkServe 1 $time.$(($$ % 10)) ns/op $allocations allocs/op"
`

// stacksScript writes what a profiler would: where the time of an operation is spent.
const stacksScript = `read -r time allocations <"$1"
{
	echo "gateway.main;net/http.(*Server).Serve;gateway.(*Router).ServeHTTP;gateway.render $time"
	echo "gateway.main;net/http.(*Server).Serve;gateway.(*Router).ServeHTTP;runtime.mallocgc $((allocations * 20))"
	for i in 1 2 3 4 5 6 7 8 9; do echo "gateway.main;net/http.(*Server).Serve;gateway.(*Router).ServeHTTP;gateway.match;regexp.step$i 40"; done
	for i in $(seq 400); do echo "gateway.main;runtime.gcBgMarkWorker;runtime.scan$i 1"; done
} >"$2"
`

// gatewayRelease is a release with what an operation of each benchmark needs: nanoseconds
// and allocations. Empty: it fails.
type gatewayRelease struct {
	tag   string
	needs [4]string
}

// gatewayReleases are the releases of the gateway; the first ones end well.
var gatewayReleases = []gatewayRelease{
	{"0.5.0", [...]string{"1302 14", "331 3", "5402 41", "9120 96"}},
	{"0.6.0", [...]string{"1300 14", "330 3", "5405 41", "9117 96"}},
	{"0.7.0", [...]string{"1303 14", "331 3", "5410 41", "9121 96"}},
	{"0.8.0", [...]string{"1301 14", "330 3", "5407 41", "8878 96"}},
	{"0.9.0", [...]string{"1249 12", "316 3", "5411 41", "8875 90"}},
	{"1.0.0", [...]string{"1248 12", "316 3", "5408 41", "8874 90"}},
	{"1.1.0", [...]string{"1251 12", "315 3", "5410 41", "8871 90"}},
	{"1.2.0", [...]string{"1250 12", "316 4", "6125 46", "8310 84"}},
	{"1.3.0", [...]string{"1249 12", "316 4", "5412 41", ""}},
	{"1.4.0", [...]string{"long", "long", "long", "long"}},
}

// releasedWell counts the releases of the gateway that end well.
const releasedWell = 8

// gateway makes a project with the releases of the gateway, and returns the folder of its
// artifacts. Benchmarks may read it, other than those of t.
func (s service) gateway(t *testing.T, name string, config bench.ProjectConfig) (artifacts string) {
	t.Helper()
	artifacts = filepath.Join(s.Dir, "artifacts-"+name)
	for _, r := range gatewayReleases {
		require.NoError(t, os.MkdirAll(filepath.Join(artifacts, r.tag), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(artifacts, r.tag, "VERSION"), []byte(r.tag+"\n"), 0o644))
		for i, needs := range r.needs {
			if needs != "" {
				needing(t, artifacts, r.tag, gatewayBenchmarks[i], needs)
			}
		}
	}
	dir := t.TempDir()
	for file, text := range map[string]string{suite.FileName: fmt.Sprintf(gatewaySuite, artifacts), "measure.sh": measureScript, "stacks.sh": stacksScript} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
	}
	packed, err := suite.Pack(dir)
	require.NoError(t, err)
	_, err = s.API.PutSuite(t.Context(), packed.Hash, packed.Archive)
	require.NoError(t, err)
	_, err = s.API.ApplyProject(t.Context(), apiclient.Project{Name: name, Config: config, SuiteHash: packed.Hash}, false)
	require.NoError(t, err)
	return artifacts
}

// needing makes a benchmark of a release need so much from now on.
func needing(t *testing.T, artifacts, tag, benchmark, needs string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(artifacts, tag, benchmark), []byte(needs+"\n"), 0o644))
}

// measuredOnce is a configuration that measures nothing again by itself: neither suspects nor failures.
var measuredOnce = bench.ProjectConfig{Verify: bench.VerifyOff, MaxJobFails: 1}

// releasedGateway makes a project with eight releases that have ended, of which 0.7.0 has
// failed in one benchmark.
func (s service) releasedGateway(t *testing.T, name string) {
	t.Helper()
	artifacts := s.gateway(t, name, measuredOnce)
	require.NoError(t, os.Remove(filepath.Join(artifacts, "0.7.0", "compress")))
	for _, r := range gatewayReleases[:releasedWell] {
		s.ended(t, s.release(t, name, r.tag))
	}
}

// row is the ID of a row of a comparison of 1.1.0 with 1.2.0, as addresses have it.
func (s service) row(t *testing.T, project, benchmark string) string {
	t.Helper()
	compared, err := s.API.Compare(t.Context(), apiclient.CompareQuery{Project: project, A: "1.1.0", B: "1.2.0"})
	require.NoError(t, err)
	rows := compared.Result.Rows
	at := slices.IndexFunc(rows, func(r report.Row) bool { return r.Benchmark == benchmark && r.Metric == "ns/op" })
	require.GreaterOrEqual(t, at, 0, "%s has no row", benchmark)
	return url.QueryEscape(rows[at].ID())
}
