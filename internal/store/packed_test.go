package store_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// rawValue is a value as the tables of results have it.
type rawValue struct {
	Artifact  int64
	Tag       string
	Series    int64
	Benchmark string
	Metric    bench.Metric
	bench.Surrounding
	Iteration int
	Value     float64
	Disturbed bool
}

// rawValues reads the values that count, without the store: of the results of each
// artifact, test case and surrounding, those of the latest generation.
func (r record) rawValues() []rawValue {
	r.t.Helper()
	conn := r.connect()
	rows, err := conn.Query(r.t.Context(), `
		select a.id as artifact, a.tag, se.id as series, tc.benchmark, se.metric, r.size_class, r.hardware_id, r.co_located, c.iteration, p.value, c.disturbed <> '' as disturbed
		from test_result r join artifact a on a.id = r.artifact_id join collection c on c.result_id = r.id
		join (select * from pstat union all select * from pstat_runtime) p on p.collection_id = c.id
		join pstat_series se on se.id = p.series_id join test_case tc on tc.id = se.test_case_id
		where r.invalid_at is null and not r.probe and not r.in_turns and r.status = 'ok' and not exists (
			select from test_result later where later.invalid_at is null and not later.probe and not later.in_turns and later.generation > r.generation
				and (later.artifact_id, later.test_case_id, later.size_class, later.hardware_id, later.co_located) =
					(r.artifact_id, r.test_case_id, r.size_class, r.hardware_id, r.co_located))
		order by a.id, se.id, r.size_class, r.hardware_id, r.co_located, c.iteration`)
	require.NoError(r.t, err)
	values, err := pgx.CollectRows(rows, pgx.RowToStructByName[rawValue])
	require.NoError(r.t, err)
	require.NoError(r.t, conn.Close(r.t.Context()))
	return values
}

// place tells the values of a series, an artifact and a surrounding from others.
type place struct {
	Series   int64
	Artifact int64
	bench.Surrounding
}

// checkReading checks that whatever is read of packed results is what their rows say.
func (r record) checkReading() {
	r.t.Helper()
	want := make(map[place][]float64)
	marks := make(map[place][]bool)
	tags, samples := make(map[string]int64), make(map[string]int)
	series, ids := make(map[int64]store.Series), make(map[store.Series]int64)
	for _, v := range r.rawValues() {
		at := place{v.Series, v.Artifact, v.Surrounding}
		if want[at] == nil {
			samples[v.Tag]++
		}
		want[at], marks[at] = append(want[at], v.Value), append(marks[at], v.Disturbed)
		tags[v.Tag] = v.Artifact
		series[v.Series] = store.Series{ID: v.Series, TestCase: testCase(v.Benchmark), Metric: v.Metric}
		ids[store.Series{TestCase: testCase(v.Benchmark), Metric: v.Metric}] = v.Series
	}

	// Sheets have all values, and what a process keeps of them is what another one reads.
	other := storetest.Open(r.t, r.url)
	asked := []string{"unknown"}
	for tag := range tags {
		asked = append(asked, tag)
		own, err := r.SamplesOf(r.t.Context(), project, tag)
		require.NoError(r.t, err)
		require.Len(r.t, own, samples[tag])
		read, err := other.SamplesOf(r.t.Context(), project, tag)
		require.NoError(r.t, err)
		require.Equal(r.t, fmt.Sprint(read), fmt.Sprint(own))
		origins, err := r.Origins(r.t.Context(), project, tag, "unknown")
		require.NoError(r.t, err)
		there, err := other.Origins(r.t.Context(), project, tag, "unknown")
		require.NoError(r.t, err)
		require.Equal(r.t, there, origins)
		values := 0
		for _, s := range own {
			values += len(s.Values)
		}
		size, err := r.SizeOf(r.t.Context(), project, tag)
		require.NoError(r.t, err)
		require.Equal(r.t, store.ResultSize{Series: int64(len(own)), Values: int64(values)}, size)
		for _, s := range own {
			at := place{ids[store.Series{TestCase: s.TestCase, Metric: s.Metric}], tags[tag], s.Surrounding}
			require.Equal(r.t, want[at], s.Values)
			require.Equal(r.t, marks[at], s.Disturbed)
		}
	}
	sheets, err := r.Sheets(r.t.Context(), project, asked, nil)
	require.NoError(r.t, err)
	require.Len(r.t, sheets, len(asked))
	found := make(map[place][]float64)
	for i, a := range sheets {
		require.Equal(r.t, asked[i], a.Tag)
		for _, sheet := range a.Sheets {
			for _, s := range sheet.Sheet {
				require.Equal(r.t, sheet.Metric, series[s.ID].Metric)
				found[place{s.ID, tags[a.Tag], sheet.Surrounding}] = s.Values
			}
		}
	}
	require.Equal(r.t, want, found)
	one, err := r.Sheets(r.t.Context(), project, asked, []bench.Metric{bench.MaxRSS})
	require.NoError(r.t, err)
	for _, a := range one {
		for _, sheet := range a.Sheets {
			require.Equal(r.t, bench.MaxRSS, sheet.Metric)
		}
	}

	// Histories have all points.
	known, left, err := r.SeriesOf(r.t.Context(), project, 1000)
	require.NoError(r.t, err)
	require.Zero(r.t, left)
	var all, artifacts []int64
	for _, s := range known {
		if _, has := series[s.ID]; has {
			require.NotZero(r.t, s.TestCaseID)
			s.TestCaseID = 0
			require.Equal(r.t, series[s.ID], s)
		}
		all = append(all, s.ID)
	}
	for _, id := range tags {
		artifacts = append(artifacts, id)
	}
	slices.Sort(artifacts)
	for _, some := range [][]int64{artifacts, artifacts[len(artifacts)/2:], artifacts[:len(artifacts)/2]} {
		points, wanted := 0, 0
		for at := range want {
			if slices.Contains(some, at.Artifact) {
				wanted++
			}
		}
		for _, h := range r.histories(some, all, packed.AllFields) {
			require.True(r.t, slices.IsSortedFunc(h.Points, func(a, b packed.Point) int { return cmp.Compare(a.Artifact, b.Artifact) }))
			for _, p := range h.Points {
				points++
				at := place{h.Series, p.Artifact, h.Surrounding}
				require.Contains(r.t, some, p.Artifact)
				require.NotEmpty(r.t, want[at])
				require.Equal(r.t, packed.Summarize(want[at]), p.Summary)
				require.Equal(r.t, len(want[at]), p.N)
			}
		}
		require.Equal(r.t, wanted, points)
		r.checkState(some, all)

		// With fewer fields, the others are missing, or as they are.
		for at, p := range pointsOf(r.histories(some, all, packed.QuartileFields)) {
			whole := packed.Summarize(want[at])
			require.Equal(r.t, [3]float64{whole.Min, whole.LowerQuartile, whole.UpperQuartile}, [3]float64{p.Min, p.LowerQuartile, p.UpperQuartile})
			if math.IsInf(whole.Max, 0) {
				require.Equal(r.t, whole.Max, p.Max, "what is not finite is always seen")
			}
		}
	}
	// Many series at once come from sheets, and one alone from its strips.
	var alone []store.History
	for _, id := range all {
		alone = append(alone, r.histories(artifacts, []int64{id}, packed.AllFields)...)
		for at, p := range pointsOf(r.histories(artifacts, []int64{id}, packed.MinField)) {
			require.Equal(r.t, packed.Summarize(want[at]).Min, p.Min)
		}
		for at, p := range pointsOf(r.histories(artifacts, []int64{id}, packed.MedianFields)) {
			whole := packed.Summarize(want[at])
			require.Equal(r.t, [2]float64{whole.UpperQuartile, whole.Median}, [2]float64{p.UpperQuartile, p.Median})
		}
	}
	require.Equal(r.t, pointsOf(alone), pointsOf(r.histories(artifacts, all, packed.AllFields)))
}

// checkStates checks the state of all artifacts.
func (r record) checkStates() {
	r.t.Helper()
	known, _, err := r.SeriesOf(r.t.Context(), project, 1000)
	require.NoError(r.t, err)
	var series []int64
	for _, s := range known {
		series = append(series, s.ID)
	}
	conn := r.connect()
	rows, err := conn.Query(r.t.Context(), `select id from artifact where project = $1 order by id`, project)
	require.NoError(r.t, err)
	artifacts, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(r.t, err)
	require.NoError(r.t, conn.Close(r.t.Context()))
	r.checkState(artifacts, series)
}

// checkState checks that series have the same points on some artifacts as whenever they were in this state.
func (r record) checkState(artifacts, series []int64) {
	r.t.Helper()
	before, err := r.HistoryState(r.t.Context(), project, artifacts, series)
	require.NoError(r.t, err)
	read := make(map[int64]string)
	for at, p := range pointsOf(r.histories(artifacts, series, packed.AllFields)) {
		read[at.Series] += fmt.Sprint("\n", at, *p.Origin, p.N, p.Disturbed, p.Summary)
	}
	state, err := r.HistoryState(r.t.Context(), project, artifacts, series)
	require.NoError(r.t, err)
	require.Equal(r.t, before, state)
	for _, id := range series {
		lines := strings.Split(read[id], "\n")
		slices.Sort(lines)
		key, points := fmt.Sprint(state.Version, " ", state.Changed[id], " ", id, artifacts), strings.Join(lines, "\n")
		known, is := r.states[key]
		if is {
			require.Equal(r.t, known, points, "state %s", key)
		}
		r.states[key] = points
	}
}

// pointsOf returns points by what they are of.
func pointsOf(histories []store.History) map[place]packed.Point {
	points := make(map[place]packed.Point)
	for _, h := range histories {
		for _, p := range h.Points {
			points[place{h.Series, p.Artifact, h.Surrounding}] = p
		}
	}
	return points
}

// histories reads histories, each series once.
func (r record) histories(artifacts, series []int64, fields packed.Fields) []store.History {
	r.t.Helper()
	var all []store.History
	read := make(map[int64]bool)
	require.NoError(r.t, r.Histories(r.t.Context(), artifacts, series, fields, func(of []store.History) error {
		require.False(r.t, read[of[0].Series], "a series is read twice")
		read[of[0].Series] = true
		for _, h := range of {
			require.Equal(r.t, of[0].Series, h.Series)
			h.Points = slices.Clone(h.Points)
			all = append(all, h)
		}
		return nil
	}))
	return all
}

// After any sequence of accepting, invalidating, measuring again and purging, with
// operations that are rolled back or cancelled in between, what is packed equals
// the rows of results; and what is read does at any time, packed or not.
func TestPackedResultsAreThoseOfTheRows(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := newPackedHistory(t, seed)
			for range 60 {
				h.step()
				h.checkStates()
			}
			h.checkReading()
			h.checkPacked()
			h.checkReading()
			require.NotZero(t, h.count(`select count(*) from sheet`)+h.purged, "the history has results")
		})
	}
}

// packedHistory does random things to results.
type packedHistory struct {
	record
	random     *rand.Rand
	collectors []bench.Collector
	requests   map[string]bench.Request
	jobs       int
	purged     int
	// interrupt lets something begin, and ends it somewhere.
	interrupt func(do func(ctx context.Context, s *store.Store) error)
}

func newPackedHistory(t *testing.T, seed uint64) *packedHistory {
	h := &packedHistory{record: newRecord(t), random: rand.New(rand.NewPCG(14, seed)), requests: make(map[string]bench.Request)} //nolint:gosec // not for secrets
	for i, hardware := range []string{"zen4", "zen5"} {
		c := collector(fmt.Sprint("c", i))
		c.HardwareID = hardware
		registered, err := h.RegisterCollector(t.Context(), c, offline)
		require.NoError(t, err)
		h.collectors = append(h.collectors, registered)
	}
	h.interrupt = h.cancelled
	return h
}

func (h *packedHistory) tag() string { return fmt.Sprint("v", h.random.IntN(6)) }

func (h *packedHistory) step() {
	act := store.Act{Who: "ada", Reason: "a test", DryRun: h.random.IntN(4) == 0} // rolled back
	switch n := h.random.IntN(20); {
	case n < 9:
		h.measure(h.tag())
	case n < 11:
		_, err := h.InvalidateResults(h.t.Context(), store.ResultFilter{Project: project, Tag: h.tag()}, act)
		require.NoError(h.t, err)
	case n < 12:
		h.purge(h.tag(), act)
	case n < 16:
		_, err := h.PackResults(h.t.Context(), project)
		require.NoError(h.t, err)
	case n < 18:
		h.interrupt(func(ctx context.Context, s *store.Store) error { _, err := s.PackResults(ctx, project); return err })
	case n < 19:
		h.checkReading()
	default:
		_, err := h.RebuildPacked(h.t.Context(), project, act)
		require.NoError(h.t, err)
	}
}

// cancelled lets something begin, and cancels it at some time.
func (h *packedHistory) cancelled(do func(ctx context.Context, s *store.Store) error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Duration(h.random.IntN(30_000))*time.Microsecond)
	defer cancel()
	if err := do(ctx, h.Store); err != nil {
		require.ErrorIs(h.t, ctx.Err(), context.DeadlineExceeded, "it fails by being cancelled alone: %v", err)
	}
}

// measure measures some benchmarks of an artifact, again if it was.
func (h *packedHistory) measure(tag string) {
	request, known := h.requests[tag]
	if !known {
		request = h.inProgress(release(h.t, tag))
		h.requests[tag] = request
	}
	var benchmarks []string
	for _, name := range []string{"gin", "kit", "zap"} {
		if h.random.IntN(3) > 0 {
			benchmarks = append(benchmarks, name)
		}
	}
	if len(benchmarks) == 0 {
		return
	}
	h.jobs++
	job := newJob(request, benchmarks...)
	job.Generation, job.Key = h.jobs, bench.JobKey(fmt.Sprintf("%016d", h.jobs))
	if h.random.IntN(2) == 0 {
		job.Kind = bench.KindRuntime
	}
	require.NoError(h.t, h.ExpandRequest(h.t.Context(), request.ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(job)}))
	plan := h.start(job, 1, h.collectors[h.random.IntN(len(h.collectors))])
	for _, name := range benchmarks {
		var values []float64
		for range 1 + h.random.IntN(6) {
			values = append(values, []float64{h.random.Float64(), 3, math.Inf(1), -0.5}[h.random.IntN(4)])
		}
		result := measured(name, values...)
		switch h.random.IntN(6) {
		case 0:
			result.Collections, result.Skipped = nil, "too old"
		case 1:
			result = disturbed(result, byOthers, h.random.IntN(len(values)))
		}
		upload := func(ctx context.Context, s *store.Store) error {
			_, err := s.StoreBlock(ctx, plan.Run.ID, []bench.TestCaseResult{result}, nil)
			return err
		}
		if h.random.IntN(5) == 0 {
			h.interrupt(upload)
		} else {
			require.NoError(h.t, upload(h.t.Context(), h.Store))
		}
	}
	require.NoError(h.t, h.FinishRun(h.t.Context(), plan.Run.ID, bench.RunEnd{Outcome: bench.RunSuccess}))
	if h.random.IntN(4) > 0 { // else it stays open, and is not packed yet
		_, err := h.FinishJob(h.t.Context(), job.Key, 0, "")
		require.NoError(h.t, err)
	}
}

// purge ends what is under way of an artifact, and removes it.
func (h *packedHistory) purge(tag string, act store.Act) {
	if request, known := h.requests[tag]; known {
		_, _, err := h.EndRequest(h.t.Context(), request.ID, store.EndOptions{Outcome: bench.Cancelled}, store.Act{Who: "ada"})
		require.NoError(h.t, err)
		delete(h.requests, tag)
	}
	if h.random.IntN(2) == 0 { // it ends halfway at first
		h.interrupt(func(ctx context.Context, s *store.Store) error {
			if _, err := s.PurgeArtifact(ctx, project, tag, act); !errors.Is(err, store.ErrNotFound) {
				return err
			}
			return nil
		})
		h.checkReading()
	}
	for _, act.DryRun = range []bool{true, false} {
		_, err := h.PurgeArtifact(h.t.Context(), project, tag, act)
		if errors.Is(err, store.ErrNotFound) {
			return
		}
		require.NoError(h.t, err)
	}
	h.purged++
}

// Whatever is wrong with packed results, a check says so; packing them anew mends it.
func TestACheckFindsWhatDiffers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, says string }{
		"a sheet is gone":                  {`delete from sheet where metric = 'wall-time'`, "has results of wall-time on size class 2, hardware zen4, and no sheet"},
		"a sheet too many":                 {`insert into sheet select artifact_id, 'instructions', size_class, hardware_id, co_located, series, n_values, packed from sheet where metric = 'max-rss'`, "has a sheet of instructions on size class 2, hardware zen4, and no results"},
		"a sheet with another number":      {`update sheet set n_values = n_values + 1`, "a sheet of max-rss on size class 2, hardware zen4 that is not that of its results"},
		"a sheet with other values":        {`update sheet s set packed = (select o.packed from sheet o where o.metric = 'max-rss' limit 1) where metric = 'wall-time'`, "that is not that of its results"},
		"a damaged sheet":                  {`update sheet set packed = substr(packed, 1, 20)`, "that is not that of its results"},
		"a history is gone":                {`delete from strip where series_id = (select min(series_id) from strip)`, "lacks artifact v1"},
		"a history of other artifacts":     {`update strip set last_artifact = last_artifact + 1`, "has other artifacts"},
		"a damaged history":                {`update strip set packed = substr(packed, 1, 20)`, "cannot be read"},
		"the history of another series":    {`update strip s set packed = o.packed from strip o where o.series_id <> s.series_id`, "that is not that of its results"},
		"results that changed without us":  {`alter table test_result disable trigger stale_update; update test_result set probe = true`, "and no results of it"},
		"a point of results that are gone": {`alter table test_result disable trigger stale_delete; delete from test_result; delete from sheet`, "without results"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRecord(t)
			collector := r.register("one")
			for _, tag := range []string{"v1", "v2"} {
				_, job := r.oneJob(tag, "gin", "kit")
				plan := r.start(job, 1, collector)
				r.block(plan.Run.ID, measured("gin", 1, 2, float64(len(tag))+r.float()), measured("kit", 3, r.float()))
				_, err := r.FinishJob(t.Context(), job.Key, 0, "")
				require.NoError(t, err)
			}
			n, err := r.PackResults(t.Context(), project)
			require.NoError(t, err)
			require.Equal(t, 2, n)
			sound, err := r.CheckPacked(t.Context(), project, 0, 10)
			require.NoError(t, err)
			require.Equal(t, store.PackedCheck{Artifacts: 2, Sheets: 4, Points: 8}, sound)

			r.execute(c.sql)
			found, err := r.CheckPacked(t.Context(), project, 0, 10)
			require.NoError(t, err)
			require.NotEmpty(t, found.Differences)
			require.Contains(t, fmt.Sprint(found.Differences), c.says)
			_, err = r.RebuildPacked(t.Context(), project, store.Act{Who: "ada", Reason: "a test"})
			require.NoError(t, err)
			wrong, err := storetest.Mispacked(t.Context(), r.Store, project)
			require.NoError(t, err)
			require.Empty(t, wrong)
		})
	}
}

// A sheet of another version, for instance, costs no comparison.
func TestASheetThatCannotBeReadIsReadFromItsRows(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("v1", "gin", "kit")
	plan := r.start(job, 1, r.register("one"))
	r.block(plan.Run.ID, measured("gin", 1, 2), measured("kit", 3, 4))
	_, err := r.FinishJob(t.Context(), job.Key, 0, "")
	require.NoError(t, err)
	n, err := r.PackResults(t.Context(), project)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	sound, err := r.SamplesOf(t.Context(), project, "v1")
	require.NoError(t, err)
	require.NotEmpty(t, sound)

	r.execute(`update sheet set packed = substr(packed, 1, 20) where metric = 'wall-time'`)
	own, err := r.SamplesOf(t.Context(), project, "v1")
	require.NoError(t, err)
	require.Equal(t, sound, own)
	r.checkReading()
	_, err = r.RebuildPacked(t.Context(), project, store.Act{Who: "ada", Reason: "a test"})
	require.NoError(t, err)
}

// float returns a value that no other has.
func (r record) float() float64 { return 10 + rand.Float64() } //nolint:gosec // not for secrets

// A history that is longer than a full strip has several, of which a new artifact changes only
// the last; full ones that follow each other become one. Artifacts that come late are put where
// they belong, the newest first as well.
func TestLongHistoriesHaveSeveralStrips(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	collector := r.register("one")
	measure := func(tag string) {
		request, known := bench.Request{}, false
		if found, err := r.RequestByTag(t.Context(), project, tag); err == nil {
			request, known = found, true
		}
		if !known {
			request = r.inProgress(release(t, tag))
		}
		job := newJob(request, "gin")
		job.Generation = r.count(`select count(*) from job_queue`)
		job.Key = bench.JobKey(fmt.Sprintf("%016d", job.Generation))
		require.NoError(t, r.ExpandRequest(t.Context(), request.ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(job)}))
		plan := r.start(job, 1, collector)
		r.block(plan.Run.ID, measured("gin", r.float(), r.float()))
		_, err := r.FinishJob(t.Context(), job.Key, 0, "")
		require.NoError(t, err)
	}
	packAll := func() {
		for {
			n, err := r.PackResults(t.Context(), project)
			require.NoError(t, err)
			if n == 0 {
				return
			}
		}
	}
	const ofOne = ` from strip s where s.series_id = (select id from pstat_series where metric = 'wall-time')`
	strips := func() int { return r.count(`select count(*)` + ofOne) }
	older := func() int {
		return r.count(`select max(s.xmin::text::bigint)` + ofOne + ` and s.last_artifact < (select max(last_artifact) from strip)`)
	}
	measure("1.0.0")
	const atOnce = 8
	full := 72 - r.count(`select id % 16 from pstat_series where metric = 'wall-time'`)
	for i := range full + 2 {
		measure(fmt.Sprint("1.0.", i+1))
	}
	packAll()
	require.Equal(t, 2, strips())
	r.checkReading()

	for i := range full {
		if i%atOnce == 0 {
			packAll()
		}
		measure(fmt.Sprint("1.1.", i))
	}
	require.Equal(t, 3, strips())
	packAll()
	require.Equal(t, 2, strips())
	require.Equal(t, 2*full, r.count(`select max(s.points)`+ofOne))
	r.checkReading()

	// Older parts had all of their bytes in one place.
	r.execute(`update strip set packed = packed || rest, rest = null`)
	r.checkReading()

	// The newest part grows; the one before stays as it is.
	measure("2.0.0")
	packAll()
	require.Equal(t, 3, strips())
	before := older()
	measure("2.0.1")
	packAll()
	require.Equal(t, before, older())

	// One in the middle is measured again, another disappears, and all is derived anew.
	measure("1.0.40")
	_, err := r.InvalidateResults(t.Context(), store.ResultFilter{Project: project, Tag: "1.0.0"}, store.Act{Who: "ada", Reason: "a test"})
	require.NoError(t, err)
	r.checkReading()
	packAll()
	r.checkReading()
	_, err = r.RebuildPacked(t.Context(), project, store.Act{Who: "ada", Reason: "a test"})
	require.NoError(t, err)
	packAll()
	require.Equal(t, 2, strips())
	r.checkReading()
}

// Drawings of a history are kept by its state: that of a series stays as it is while rows are
// written that change nothing of it, packed or not.
func TestTheStateOfAHistoryIsThatOfItsValues(t *testing.T) {
	t.Parallel()
	h := newPackedHistory(t, 1)
	request := h.inProgress(release(t, "v1"))
	value := map[string]float64{"gin": 1, "kit": 2}
	measure := func(benchmarks ...string) {
		h.jobs++
		job := newJob(request, benchmarks...)
		job.Generation, job.Key = h.jobs, bench.JobKey(fmt.Sprintf("%016d", h.jobs))
		require.NoError(t, h.ExpandRequest(t.Context(), request.ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(job)}))
		plan := h.start(job, 1, h.collectors[0])
		for _, name := range benchmarks {
			h.block(plan.Run.ID, measured(name, value[name]))
		}
		_, err := h.FinishJob(t.Context(), job.Key, 0, "")
		require.NoError(t, err)
	}
	pack := func() {
		_, err := h.PackResults(t.Context(), project)
		require.NoError(t, err)
		require.Zero(t, h.count(`select count(*) from stale_result`))
	}
	measure("gin", "kit")
	pack()
	series, _, err := h.SeriesOf(t.Context(), project, 10)
	require.NoError(t, err)
	var ids []int64
	of := make(map[string][]int64)
	for _, s := range series {
		ids, of[s.TestCase.Benchmark] = append(ids, s.ID), append(of[s.TestCase.Benchmark], s.ID)
	}
	artifact := int64(h.count(`select id from artifact`))
	state := func() store.HistoryState {
		state, err := h.HistoryState(t.Context(), project, []int64{artifact}, ids)
		require.NoError(t, err)
		return state
	}
	packedState := state()
	require.Empty(t, packedState.Changed)

	conn := h.connect()
	_, err = conn.Exec(t.Context(), `update test_result set message = message`)
	require.NoError(t, err)
	require.Equal(t, packedState, state())
	pack()
	require.Equal(t, packedState, state())

	value["kit"] = 3
	measure("kit")
	changed := state()
	require.Equal(t, packedState.Version, changed.Version)
	require.ElementsMatch(t, of["kit"], slices.Collect(maps.Keys(changed.Changed)))
	require.Equal(t, changed, state())
	value["kit"] = 4
	measure("kit")
	for _, id := range of["kit"] {
		require.NotEqual(t, changed.Changed[id], state().Changed[id])
	}
	pack()
	require.Empty(t, state().Changed)
	require.NotEqual(t, packedState.Version, state().Version)

	// Without their rows, they are gone.
	_, err = conn.Exec(t.Context(), `update test_result set invalid_at = now()`)
	require.NoError(t, err)
	gone := state()
	require.Len(t, gone.Changed, len(ids))

	// What has changed of sheets that cannot be read is not known.
	_, err = conn.Exec(t.Context(), `update sheet set packed = '\x00'`)
	require.NoError(t, err)
	require.NotEqual(t, gone.Version, state().Version)
	require.NoError(t, conn.Close(t.Context()))
}
