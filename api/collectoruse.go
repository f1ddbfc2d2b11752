package api

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/store"
)

// UseRecord reads what collectors did, and how noisy they are.
type UseRecord interface {
	CollectorActivities(ctx context.Context) ([]store.CollectorActivity, error)
	CollectorsUse(ctx context.Context, from, until time.Time) ([]store.CollectorUse, error)
	CollectorHours(ctx context.Context, name string, from time.Time, hours int) ([]store.UsedHour, error)
	CollectorRuns(ctx context.Context, name string, page store.RunPage) ([]bench.Run, error)
	// NoiseBeside lists the noise of a collector's series beside that of its pool; pool
	// counts the series of the pool.
	NoiseBeside(ctx context.Context, c bench.Collector) (beside []store.NoiseOfCollector, pool int, err error)
}

// usePeriod is the period of the use in lists of collectors.
const usePeriod = 24 * time.Hour

func (s *collectorHandlers) registerUse() {
	handle(s.base, operation{id: "get-collector-use", method: http.MethodGet, path: "/collectors/{collector}/use", need: toRead, tag: "collectors",
		summary: "Show how much a collector did", description: "By outcome of its runs, and by hour. Runs that began more than two days before the period are left out."}, s.collectorUse)
	handle(s.base, operation{id: "list-collector-runs", method: http.MethodGet, path: "/collectors/{collector}/runs", need: toRead, tag: "collectors",
		summary: "List the runs of a collector, newest first"}, s.collectorRuns)
	handle(s.base, operation{id: "get-collector-noise", method: http.MethodGet, path: "/collectors/{collector}/noise", need: toRead, tag: "collectors",
		summary: "Compare the noise of a collector with that of its pool", description: "By series, from the latest sessions: on this collector, and on all with its hardware and size class together."}, s.collectorNoise)
}

type listCollectors struct {
	Use bool `query:"use" doc:"Add the use of the last 24 hours."`
}

// addUse fills in since when collectors are in their states and, if it is wanted, how much
// they did in the last 24 hours.
func (s *collectorHandlers) addUse(ctx context.Context, collectors []apiclient.Collector, wanted bool) error {
	activities, err := s.record.CollectorActivities(ctx)
	if err != nil {
		return err
	}
	for i, c := range collectors {
		at := slices.IndexFunc(activities, func(a store.CollectorActivity) bool { return a.Name == c.Name })
		if at >= 0 {
			since := stateSince(c, activities[at])
			collectors[i].StateSince = &since
		}
	}
	if !wanted {
		return nil
	}
	until := s.Now()
	used, err := s.record.CollectorsUse(ctx, until.Add(-usePeriod), until)
	for i, c := range collectors {
		use, _ := useOf(c.Name, used, until.Add(-usePeriod), until)
		collectors[i].Use = &use
	}
	return err
}

// stateSince returns when a collector entered its state: a drained collector when it could last
// take jobs, and a waiting one at the end of its last run, or at its registration.
func stateSince(c apiclient.Collector, a store.CollectorActivity) time.Time {
	switch {
	case c.State == bench.CollectorOffline:
		return c.LastHeartbeat
	case c.SetAsideAt != nil:
		return *c.SetAsideAt
	case c.State == bench.CollectorInactive, c.State == bench.CollectorDraining:
		return a.AvailableAt
	case c.State == bench.CollectorBenchmarking && a.StartedAt != nil:
		return *a.StartedAt
	case a.FinishedAt != nil && a.FinishedAt.After(c.RegisteredAt):
		return *a.FinishedAt
	}
	return c.RegisteredAt
}

// useOf sums up the use of a collector within a period.
func useOf(name string, used []store.CollectorUse, from, until time.Time) (apiclient.CollectorUse, []apiclient.OutcomeUse) {
	use := apiclient.CollectorUse{From: from, To: until}
	outcomes := []apiclient.OutcomeUse{}
	for _, u := range used {
		if u.Name != name {
			continue
		}
		outcomes = append(outcomes, apiclient.OutcomeUse{Outcome: u.Outcome, Runs: u.Runs, Seconds: u.Seconds})
		use.Runs, use.Seconds = use.Runs+u.Runs, use.Seconds+u.Seconds
		if u.Outcome == bench.RunLost {
			use.Lost += u.Runs
		}
	}
	// A run that was given up for lost ends late, when others are under way already.
	use.Share = min(1, use.Seconds/until.Sub(from).Seconds())
	return use, outcomes
}

type getCollectorUse struct {
	Collector string `path:"collector" doc:"Name of the collector."`
	Hours     int    `query:"hours" minimum:"1" maximum:"168" default:"24" doc:"The last hours."`
}

func (s *collectorHandlers) collectorUse(ctx context.Context, in *getCollectorUse) (*body[apiclient.CollectorDay], error) {
	c, err := s.collector(ctx, in.Collector)
	if err != nil {
		return nil, err
	}
	until := s.Now()
	from := until.Add(-time.Duration(in.Hours) * time.Hour)
	used, err := s.record.CollectorsUse(ctx, from, until)
	if err != nil {
		return nil, err
	}
	var out apiclient.CollectorDay
	out.CollectorUse, out.Outcomes = useOf(c.Name, used, from, until)
	hours, err := s.record.CollectorHours(ctx, c.Name, from, in.Hours)
	for _, h := range hours {
		out.Hours = append(out.Hours, apiclient.UsedHour(h))
	}
	return answer(out, err)
}

type listCollectorRuns struct {
	Collector string `path:"collector" doc:"Name of the collector."`
	Outcome   string `query:"outcome" enum:"success,failure,too_small,timeout,oom,permanent,cancelled,lost,running" doc:"Only those with this outcome."`
	Limit     int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	After     string `query:"after" doc:"The value of next from the page before."`
}

func (s *collectorHandlers) collectorRuns(ctx context.Context, in *listCollectorRuns) (*body[apiclient.RunList], error) {
	c, err := s.collector(ctx, in.Collector)
	if err != nil {
		return nil, err
	}
	page := store.RunPage{Limit: in.Limit}
	switch in.Outcome {
	case "":
	case "running":
		page.Outcomes = []bench.RunOutcome{bench.RunRunning}
	default:
		page.Outcomes = []bench.RunOutcome{bench.RunOutcome(in.Outcome)}
	}
	if in.After != "" {
		micros, id, ok := strings.Cut(in.After, "-")
		at, err := strconv.ParseInt(micros, 10, 64)
		if !ok || err != nil {
			return nil, invalid("after is %.40q; give what the page before named as next, or nothing for the first page", in.After)
		}
		before := time.UnixMicro(at)
		page.Before, page.BeforeID = &before, bench.RunID(id)
	}
	stored, err := s.record.CollectorRuns(ctx, c.Name, page)
	if err != nil {
		return nil, err
	}
	runs, err := runsOf(stored)
	out := apiclient.RunList{Runs: runs}
	if len(runs) == in.Limit {
		last := runs[len(runs)-1]
		out.Next = strconv.FormatInt(last.StartedAt.UnixMicro(), 10) + "-" + string(last.ID)
	}
	return answer(out, err)
}

// noisiest bounds the series of an answer.
const noisiest = 200

func (s *collectorHandlers) collectorNoise(ctx context.Context, in *collectorPath) (*body[apiclient.CollectorNoise], error) {
	c, err := s.collector(ctx, in.Collector)
	if err != nil {
		return nil, err
	}
	stored, pool, err := s.record.NoiseBeside(ctx, c)
	if err != nil {
		return nil, err
	}
	out := apiclient.CollectorNoise{Series: make([]apiclient.NoiseBeside, len(stored)), Total: len(stored), PoolSeries: pool}
	for i, n := range stored {
		out.Series[i] = noiseBeside(n)
	}
	out.Summary = summarizeNoise(out.Series)
	slices.SortStableFunc(out.Series, func(x, y apiclient.NoiseBeside) int {
		return cmp.Compare(ratio(y.Within, y.PoolWithin), ratio(x.Within, x.PoolWithin))
	})
	out.Series = out.Series[:min(len(out.Series), noisiest)]
	return answer(out, nil)
}

func noiseBeside(n store.NoiseOfCollector) apiclient.NoiseBeside {
	out := apiclient.NoiseBeside{
		Project: n.Project, TestCase: n.TestCase, Metric: n.Metric, Sessions: n.Model.Sessions, PoolSessions: n.Pool.Sessions,
		Level: n.Model.Level, PoolLevel: n.Pool.Level,
		Within: relative(n.Model.SigmaWithin, n.Model), PoolWithin: relative(n.Pool.SigmaWithin, n.Pool),
		Between: relative(n.Model.SigmaSession, n.Model), PoolBetween: relative(n.Pool.SigmaSession, n.Pool),
	}
	for _, label := range n.Model.Labels {
		out.Labels = append(out.Labels, string(label))
	}
	return out
}

// relative returns a standard deviation of a model relative to its level; 0 if the level is 0.
func relative(sigma float64, m noise.Model) float64 {
	switch {
	case m.Logarithms:
		return sigma
	case m.Level == 0:
		return 0
	}
	return sigma / math.Abs(m.Level)
}

// ratio returns how many times larger a spread is than the pool's; 1 if both are 0, and 0
// if only the pool's is 0: nothing can be said then.
func ratio(own, pool float64) float64 {
	switch {
	case pool > 0:
		return own / pool
	case own == 0:
		return 1
	}
	return 0
}

// summarizeNoise returns the medians of the ratios of series; nil without any.
func summarizeNoise(series []apiclient.NoiseBeside) *apiclient.NoiseSummary {
	var within, between, level []float64
	for _, n := range series {
		for _, one := range []struct {
			to        *[]float64
			own, pool float64
		}{{&within, n.Within, n.PoolWithin}, {&between, n.Between, n.PoolBetween}, {&level, math.Abs(n.Level), math.Abs(n.PoolLevel)}} {
			if r := ratio(one.own, one.pool); r > 0 {
				*one.to = append(*one.to, r)
			}
		}
	}
	if len(within) == 0 || len(between) == 0 || len(level) == 0 {
		return nil
	}
	return &apiclient.NoiseSummary{Within: median(within), Between: median(between), Level: median(level)}
}

// median returns the middle of values, or the mean of the two in the middle; it sorts them.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// factsOf returns the facts of a machine; nil if there are none.
func factsOf(text json.RawMessage) json.RawMessage {
	if string(text) == "{}" {
		return nil
	}
	return text
}
