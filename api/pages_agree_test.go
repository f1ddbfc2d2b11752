package api_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
	"github.com/benchloom/benchloom/internal/verdict"
)

// randomReleases has releases with random results: in two surroundings, with exact values,
// with test cases that failed, and partly measured in turns with the release before. Every
// second seed has stored verdicts as well.
type randomReleases struct {
	*bundle
	t          *testing.T
	random     *rand.Rand
	cases      []bench.TestCase
	collectors []apiclient.Registered
	tags       []string
	jobs       []job
}

func newRandomReleases(t *testing.T, seed uint64) *randomReleases {
	t.Helper()
	b := setup(t)
	b.project(t)
	w := &randomReleases{bundle: b, t: t, random: rand.New(rand.NewPCG(14, seed)), tags: []string{"1.20.0", "1.21.0", "1.22.0", "1.23.0"}}
	elsewhere := registration("c2")
	elsewhere.HardwareID = "cpu1"
	other, err := b.collector.RegisterCollector(t.Context(), elsewhere)
	require.NoError(t, err)
	w.collectors = []apiclient.Registered{b.register(t, "c1"), other}
	for _, benchmark := range []string{"gin", "kit", "zap"} {
		for _, scenario := range []string{"full", "incr-patched"} {
			w.cases = append(w.cases, bench.TestCase{Benchmark: benchmark, Profile: "build", Scenario: scenario, Backend: "gc", Target: linux})
		}
	}
	for _, tag := range w.tags {
		w.measure(tag)
	}
	for i, tag := range w.tags[1:] {
		w.inTurns(w.tags[i], tag)
	}
	for i, j := range w.jobs {
		if i > 0 && seed%2 == 0 {
			w.looks(i, j.request)
		}
		w.complete(i, j.request)
	}
	return w
}

// one chooses one of several at random.
func one[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

// measure measures a release: most of it where all others are, the rest elsewhere, but for
// a test case that may fail.
func (w *randomReleases) measure(tag string) {
	w.t.Helper()
	j := w.expandTo(w.t, w.admitted(w.t, tag), w.cases...)
	w.jobs = append(w.jobs, j)
	order := slices.Clone(w.cases)
	w.random.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	there := len(order) - w.random.IntN(3)
	failing := w.random.IntN(2)
	for attempt, cases := range [][]bench.TestCase{order[failing:there], order[there:]} {
		if len(cases) == 0 {
			continue
		}
		plan := w.start(w.t, j, w.collectors[attempt], int32(attempt+1))
		values := block(cases, one(w.random, 1, 1.0003, 1.2, 0.7))
		for _, r := range values.Results {
			size := float64(12000 + w.random.IntN(3))
			for _, c := range r.Collections {
				c.Values["size:binary"] = size
				c.Values[bench.WallTime] *= 1 + w.random.NormFloat64()/1000
			}
		}
		if attempt == 0 && failing > 0 {
			values.Errors = []apiclient.BlockError{{TestCase: &order[0], Kind: bench.FailJob, Message: "exit status 3"}}
		}
		_, err := w.collector.UploadBlock(w.t.Context(), plan.Run.ID, 1, values)
		require.NoError(w.t, err)
		require.NoError(w.t, w.collector.FinishRun(w.t.Context(), plan.Run.ID, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	}
	_, err := w.store.FinishJob(w.t.Context(), j.key, 0, map[bool]string{true: "a test case failed"}[failing > 0])
	require.NoError(w.t, err)
}

// inTurns measures some test cases of two releases in turns.
func (w *randomReleases) inTurns(a, b string) {
	w.t.Helper()
	r, err := w.writer.CreateRequest(w.t.Context(), apiclient.NewRequest{Project: "go", Type: bench.AdHoc, Tag: b, Versus: a})
	require.NoError(w.t, err)
	jobs, err := w.store.RequestJobs(w.t.Context(), w.jobs[slices.Index(w.tags, b)].request.ID)
	require.NoError(w.t, err)
	planned := jobs[0]
	planned.TestCases = slices.DeleteFunc(slices.Clone(w.cases), func(bench.TestCase) bool { return w.random.IntN(3) == 0 })
	planned.Versus, planned.Key = a, bench.JobIdentity{Request: r.ID, Versus: a}.Key()
	require.NoError(w.t, w.store.StartAdHoc(w.t.Context(), r.ID))
	require.NoError(w.t, w.store.ExpandRequest(w.t.Context(), r.ID, store.Expansion{Stage: bench.StageOwn, Jobs: storetest.Planned(planned)}))
	run := bench.NewRunID(planned.Key, "workflow", "activity", 1)
	_, err = w.collector.StartRun(w.t.Context(), run, w.runStart(w.t, run, w.collectors[0]))
	require.NoError(w.t, err)
	var values apiclient.Block
	for _, tc := range planned.TestCases {
		pairs, factor := one(w.random, 3, 40), one(w.random, 1, 1.1, 0.95)
		for tag, seconds := range map[string]float64{a: 1, b: factor} {
			result := apiclient.TestCaseResult{TestCase: tc, Tag: tag}
			for i := range pairs {
				result.Collections = append(result.Collections, apiclient.Collection{
					Iteration: i + 1, CollectedAt: time.Date(2026, 2, 3, 4, 5, i, 0, time.UTC),
					Values: map[bench.Metric]float64{bench.WallTime: seconds * (1 + w.random.NormFloat64()/2000)},
				})
			}
			values.Results = append(values.Results, result)
		}
	}
	_, err = w.collector.UploadBlock(w.t.Context(), run, 1, values)
	require.NoError(w.t, err)
	require.NoError(w.t, w.collector.FinishRun(w.t.Context(), run, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	_, err = w.store.FinishJob(w.t.Context(), planned.Key, 0, "")
	require.NoError(w.t, err)
}

// looked is the suspicion of each row of which a look is stored.
const looked = "far from the values before"

// looks stores random verdicts on a release and the one before: on most test cases, of each
// kind, as the last look leaves them.
func (w *randomReleases) looks(i int, r apiclient.Request) {
	w.t.Helper()
	where := registration("c1")
	c := store.Comparison{Request: r.ID, Baseline: w.tags[i-1], Tag: w.tags[i], Mode: bench.VerifySuspects, RuleVersion: verdict.RuleVersion}
	for _, tc := range w.cases {
		row := store.ComparisonRow{
			TestCase: tc, Metric: bench.WallTime, Surrounding: bench.Surrounding{SizeClass: where.SizeClass, HardwareID: where.HardwareID},
			Against: c.Baseline, Delta: 0.01, SigmaWithin: 0.001, Tau: 0.001, Sees: 0.02,
			Verdict: &verdict.Verdict{Kind: verdict.NoSuspicion, P: 1, Sees: 0.02},
		}
		switch w.random.IntN(6) {
		case 0:
			continue
		case 1:
		default:
			row.Suspected, row.Measured, row.Score, row.Suspicion, row.SuspectedChange = true, true, 5, looked, 0.1
			row.Verdict = w.found()
			c.FamilySize++
		}
		c.Rows = append(c.Rows, row)
	}
	require.NoError(w.t, w.store.BeginComparison(w.t.Context(), c))
}

// found returns a random verdict of a family.
func (w *randomReleases) found() *verdict.Verdict {
	change := one(w.random, 0.3, 0.02, -0.04) * (1 + w.random.Float64())
	v := verdict.Verdict{
		Kind: verdict.Changed, Change: change, Interval: &stats.Interval{Low: change - 0.005, High: change + 0.005, Confidence: 0.99},
		Pairs: 20 + w.random.IntN(20), Sessions: 2, P: 0.0001, Level: 0.002, Sees: 0.02, Reason: "the whole interval is relevant",
	}
	switch w.random.IntN(3) {
	case 0:
		v.Kind, v.Change, v.P, v.Interval = verdict.NoDifference, 0.0001, 0.8, &stats.Interval{Low: -0.003, High: 0.003, Confidence: 0.99}
	case 1:
		v.Kind, v.P, v.Reason, v.Needs = verdict.Undecided, 0.1, "noise: the interval is wide", "more pairs"
	}
	return &v
}

// complete ends a request and keeps the summary of its comparison.
func (w *randomReleases) complete(i int, r apiclient.Request) {
	w.t.Helper()
	baseline, summary := "", []byte(nil)
	if i > 0 {
		compared, err := w.nobody.Compare(w.t.Context(), apiclient.CompareQuery{Project: "go", B: w.tags[i]})
		require.NoError(w.t, err)
		require.Equal(w.t, w.tags[i-1], compared.A)
		baseline = compared.A
		summary, err = json.Marshal(compared.Summary)
		require.NoError(w.t, err)
	}
	require.NoError(w.t, w.store.CompleteRequest(w.t.Context(), r.ID, bench.Success, baseline, summary, ""))
}

// pairs calls do with each two releases, in both directions.
func (w *randomReleases) pairs(do func(a, b string, compared apiclient.Comparison)) {
	w.t.Helper()
	for _, a := range w.tags {
		for _, b := range w.tags {
			if a == b {
				continue
			}
			compared, err := w.nobody.Compare(w.t.Context(), apiclient.CompareQuery{Project: "go", A: a, B: b})
			require.NoError(w.t, err)
			do(a, b, compared)
		}
	}
}

// requireRows checks that each row has a line with its change and verdict among those of its
// metric, and that there are no others. Sections begin with the name of their metric.
func requireRows(t *testing.T, text string, sections []string, rows []report.Row) {
	t.Helper()
	byMetric := make(map[string][]report.Row)
	for _, r := range rows {
		byMetric[r.Metric] = append(byMetric[r.Metric], r)
	}
	for metric, rows := range byMetric {
		at := slices.IndexFunc(sections, func(s string) bool { return strings.HasPrefix(s, metric+" (") })
		require.GreaterOrEqual(t, at, 0, "%s is missing in\n%s", metric, text)
		lines := strings.Split(sections[at], "\n")
		for _, r := range rows {
			said := r.Shown()
			words := []string{r.Name()}
			if said.Stored != "" {
				words = append(words, said.Stored)
			}
			words = strings.Fields(strings.Join(append(words, said.Change, said.Verdict), " "))
			before := len(lines)
			if at := slices.IndexFunc(lines, func(line string) bool { return within(words, strings.Fields(line)) }); at >= 0 {
				lines = slices.Delete(lines, at, at+1)
			}
			require.Len(t, lines, before-1, "%s: %q is not told in\n%s", r.Key, words, text)
		}
	}
}

// sectionsOf splits text, or Markdown without its marks, into the sections of metrics.
func sectionsOf(text, mark string) []string {
	plain := strings.NewReplacer(`\`, "", "|", " ").Replace(text)
	return strings.Split(plain, mark)
}

// commandLine compares two releases as a person does in a terminal, and returns what is
// written.
func (w *randomReleases) commandLine(a, b string, more ...string) string {
	w.t.Helper()
	program := cmp.Or(os.Getenv("BENCHLOOM_BIN"), filepath.FromSlash("../bin/benchloom"))
	command := exec.CommandContext(w.t.Context(), program, append([]string{"compare", "go", a, b, "--api", w.server.URL, "--state-dir", w.t.TempDir()}, more...)...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(w.t, err, "'make build' builds the program: %s", &stderr)
	return string(out)
}

// requireCommandLine checks that the command line says what the API does, in one of its forms.
func (w *randomReleases) requireCommandLine(form int, compared apiclient.Comparison, text, markdown string) {
	w.t.Helper()
	a, b := compared.A, compared.B
	switch form % 4 {
	case 0:
		require.Equal(w.t, fmt.Sprintf("project go: %s (B) compared with %s (A)\n\n%s", b, a, text), w.commandLine(a, b, "--all"))
	case 1:
		require.Equal(w.t, markdown, w.commandLine(a, b, "--all", "-o", apiclient.FormatMarkdown))
	case 2:
		var told apiclient.Comparison
		require.NoError(w.t, json.Unmarshal([]byte(w.commandLine(a, b, "--all", "-o", "json")), &told))
		require.Equal(w.t, compared, told)
	default: // some rows, which are what they were
		metric := one(w.random, compared.Result.Rows...).Metric
		chosen := slices.DeleteFunc(slices.Clone(compared.Result.Rows), func(r report.Row) bool { return r.Metric != metric })
		narrowed := w.commandLine(a, b, "--all", "--metric", metric)
		requireRows(w.t, narrowed, sectionsOf(narrowed, "\n\n"), chosen)
	}
}

// Whoever tells of a comparison says the same: the page, the API, text, Markdown, the command
// line, and the request of which its summary is kept.
func TestAllTellTheSameOfAComparison(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newRandomReleases(t, seed)
			seen, pair, elsewhere, failed, suspected := make(map[verdict.Kind]int), 0, 0, 0, 0
			w.pairs(func(a, b string, compared apiclient.Comparison) {
				query := apiclient.CompareQuery{Project: "go", A: a, B: b}
				text, err := w.nobody.CompareText(t.Context(), query, apiclient.FormatText)
				require.NoError(t, err)
				markdown, err := w.nobody.CompareText(t.Context(), query, apiclient.FormatMarkdown)
				require.NoError(t, err)
				p := w.page(t, "", compareGo+"?show=all&a="+a+"&b="+b)
				p.requireSound(t, a+" and "+b)
				require.Contains(t, p.text(), compared.Summary.Line+".")
				require.Contains(t, text, compared.Summary.Line)
				require.Contains(t, markdown, "**"+compared.Summary.Line+"**")
				requireRows(t, text, sectionsOf(text, "\n\n"), compared.Result.Rows)
				requireRows(t, markdown, sectionsOf(markdown, "### "), compared.Result.Rows)
				w.requireCommandLine(pair, compared, text, markdown)
				pair++
				rows := p.rows()
				require.Len(t, rows, len(compared.Result.Rows))
				for _, r := range compared.Result.Rows {
					said := r.Shown()
					require.True(t, slices.ContainsFunc(rows, func(row string) bool {
						// What all rows share stands in the caption.
						return within(strings.Fields(strings.Join([]string{r.Name(), r.Metric, said.A, said.B, said.Change, said.Verdict}, " ")), strings.Fields(row))
					}), "%s: %+v\n%s", r.Key, said, strings.Join(rows, "\n"))
					if r.Verdict != nil {
						seen[*r.Verdict]++
					}
					if r.Suspicion == looked {
						suspected++
					}
					if r.Exact && r.Verdict != nil {
						require.Contains(t, []verdict.Kind{verdict.Changed, verdict.NoDifference}, *r.Verdict, "exact values leave no doubt")
					}
				}
				for _, m := range compared.Missing {
					line := m.Tag + ": " + m.TestCase.String() + ": " + m.Reason
					require.Contains(t, text, line)
					require.Contains(t, markdown, line)
					require.Contains(t, p.section("uncompared"), m.Reason)
					switch {
					case strings.Contains(m.Reason, "failed: exit status 3"):
						failed++
					case strings.Contains(m.Reason, "another surrounding"):
						elsewhere++
					}
				}
				if at := slices.Index(w.tags, b); at > 0 && w.tags[at-1] == a {
					request := w.page(t, "", "/requests/"+string(w.jobs[at].request.ID))
					require.Contains(t, request.section("verdict"), compared.Summary.Line)
					require.Contains(t, request.links(), compareGo+"?a="+a+"&b="+b)
					stored, err := w.nobody.Request(t.Context(), string(w.jobs[at].request.ID))
					require.NoError(t, err)
					now, err := json.Marshal(compared.Summary)
					require.NoError(t, err)
					require.JSONEq(t, string(now), string(stored.Summary))
				}
			})
			for _, kind := range []verdict.Kind{verdict.Changed, verdict.NoDifference, verdict.Undecided} {
				require.NotZero(t, seen[kind], "%s: %v", kind, seen)
			}
			require.NotZero(t, elsewhere+failed, "something could not be compared")
			require.Equal(t, seed%2 == 0, suspected > 0, "verdicts of looks are told")
			// One goes from each to its neighbours.
			links := w.page(t, "", compareGo+"?a=1.21.0&b=1.22.0").links()
			require.Subset(t, links, []string{compareGo + "?a=1.20.0&b=1.21.0", compareGo + "?a=1.22.0&b=1.23.0"})
		})
	}
}

// Whatever narrows a comparison hides rows: those that are left are what they were, for the
// API, in text and on the page.
func TestNoFilterChangesAVerdict(t *testing.T) {
	t.Parallel()
	filterVerdicts(t, 14, 1)
}

func TestLongNoFilterChangesAVerdict(t *testing.T) {
	t.Parallel()
	filterVerdicts(t, 14, 6)
}

// filterVerdicts narrows each comparison of random releases that many times.
func filterVerdicts(t *testing.T, seed uint64, times int) {
	t.Helper()
	w := newRandomReleases(t, seed)
	words := []string{"full", "-full", "scenario:full", "metric:max-rss", "-metric:wall-time", "wall", "undecided", "-undecided", "changed", "verdict:changed", "profile:build", "gin", "-kit", "benchmark:zap", "category:primary"}
	w.pairs(func(a, b string, compared apiclient.Comparison) {
		whole := w.page(t, "", compareGo+"?show=all&a="+a+"&b="+b).rows()
		for range times {
			query := apiclient.CompareQuery{Project: "go", A: a, B: b, OnlyInTurns: w.random.IntN(4) == 0}
			if w.random.IntN(2) == 0 {
				query.Metrics = []bench.Metric{one(w.random, bench.WallTime, bench.MaxRSS, "size:binary", "MB/s")}
			}
			if w.random.IntN(2) == 0 {
				query.Scenarios = []string{one(w.random, "full", "incr-patched")}
			}
			if w.random.IntN(2) == 0 {
				query.Benchmarks = []string{one(w.random, "gin", "kit"), "zap"}
			}
			left := slices.DeleteFunc(slices.Clone(compared.Result.Rows), func(r report.Row) bool {
				return query.OnlyInTurns && !r.InTurns || len(query.Metrics) > 0 && !slices.Contains(query.Metrics, bench.Metric(r.Metric)) ||
					len(query.Scenarios) > 0 && !slices.Contains(query.Scenarios, r.Scenario) || len(query.Benchmarks) > 0 && !slices.Contains(query.Benchmarks, r.Benchmark)
			})
			narrowed, err := w.nobody.Compare(t.Context(), query)
			if len(left) == 0 && errors.Is(err, apiclient.ErrNotFound) {
				continue
			}
			require.NoError(t, err)
			require.Equal(t, left, narrowed.Result.Rows, "%+v", query)
			require.Equal(t, compared.Result.Family, narrowed.Result.Family)
			text, err := w.nobody.CompareText(t.Context(), query, apiclient.FormatText)
			require.NoError(t, err)
			requireRows(t, text, sectionsOf(text, "\n\n"), left)

			at := url.Values{"a": {a}, "b": {b}, "show": {one(w.random, "all", "")}, "sort": {one(w.random, "name", "-change", "certainty", "-n", "a")}}
			maps.DeleteFunc(at, func(_ string, v []string) bool { return v[0] == "" })
			at.Set("q", strings.Join([]string{one(w.random, words...), one(w.random, words...)}, " "))
			if w.random.IntN(3) == 0 {
				at.Set("only", one(w.random, "regression", "improvement", "undecided"))
			}
			p := w.page(t, "", compareGo+"?"+at.Encode())
			require.Equal(t, 200, p.status, "%s: %s", at.Encode(), p.text())
			for _, row := range p.rows() {
				// What all rows share stands in the caption.
				require.True(t, slices.ContainsFunc(whole, func(all string) bool { return within(strings.Fields(row), strings.Fields(all)) }), "%s: %s", at.Encode(), row)
			}
		}
	})
}
