package apiclient

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// CollectorUse sums up a collector's runs within a period.
type CollectorUse struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Share is the part of the period in which a run was under way.
	Share   float64 `json:"share" doc:"Part of the period in which a run was under way, 0 to 1."`
	Seconds float64 `json:"seconds" doc:"That its runs took within the period."`
	Runs    int     `json:"runs" doc:"That were under way within the period."`
	Lost    int     `json:"lost" doc:"Those of them that were lost: the collector died, was shut down, or could not report."`
}

// CollectorDay is the use of a collector in detail.
type CollectorDay struct {
	CollectorUse
	Outcomes []OutcomeUse `json:"outcomes" doc:"The same by outcome."`
	Hours    []UsedHour   `json:"hours" doc:"The oldest first."`
}

// OutcomeUse counts the runs with one outcome.
type OutcomeUse struct {
	Outcome bench.RunOutcome `json:"outcome" doc:"Empty: they have not ended."`
	Runs    int              `json:"runs"`
	Seconds float64          `json:"seconds"`
}

// UsedHour is the use of one hour.
type UsedHour struct {
	Since   time.Time `json:"since"`
	Seconds float64   `json:"seconds" doc:"In which a run was under way, at most 3600."`
}

// RunList is a page of runs, the newest first.
type RunList struct {
	Runs []Run  `json:"runs"`
	Next string `json:"next,omitempty" doc:"Value of after for the next page; absent on the last one."`
}

// CollectorNoise is the noise of a collector beside that of all collectors with the same
// hardware and size class.
type CollectorNoise struct {
	// Summary is nil without series.
	Summary    *NoiseSummary `json:"summary,omitempty" doc:"Absent: there is nothing to compare."`
	Series     []NoiseBeside `json:"series" doc:"At most 200, those that are the noisiest beside their pool first."`
	Total      int           `json:"total" doc:"Number of series that are compared."`
	PoolSeries int           `json:"pool_series" doc:"Number of series of its hardware and size class whose noise is known. Those that only one collector has measured are not compared."`
}

// NoiseSummary holds the medians of the ratios of a collector's noise to its pool's.
type NoiseSummary struct {
	Within  float64 `json:"within" doc:"Of the spread within a session; above 1, the collector is noisier."`
	Between float64 `json:"between" doc:"Of the spread between sessions."`
	Level   float64 `json:"level" doc:"Of the measured levels; above 1, the collector measures more."`
}

// NoiseBeside is the noise of one series. Spreads are standard deviations relative to the
// level.
type NoiseBeside struct {
	Project      string         `json:"project"`
	TestCase     bench.TestCase `json:"test_case"`
	Metric       bench.Metric   `json:"metric"`
	Sessions     int            `json:"sessions" doc:"Undisturbed sessions on this collector that count."`
	PoolSessions int            `json:"pool_sessions"`
	Level        float64        `json:"level" doc:"In the unit of the metric."`
	PoolLevel    float64        `json:"pool_level"`
	Within       float64        `json:"within" doc:"Spread of the values of a session; 0: none, or not known."`
	PoolWithin   float64        `json:"pool_within"`
	Between      float64        `json:"between" doc:"Spread of the levels of sessions; 0: none, or not known."`
	PoolBetween  float64        `json:"pool_between"`
	Labels       []string       `json:"labels,omitempty" doc:"Noise on this collector that is not normal."`
}

// CollectorsWithUse lists all collectors with their use of the last 24 hours.
func (c *Client) CollectorsWithUse(ctx context.Context) ([]Collector, error) {
	list, err := get[CollectorList](ctx, c, v1("collectors"), url.Values{"use": {"true"}})
	return list.Collectors, err
}

// CollectorDay reads the use of a collector in the last hours, at most 168.
func (c *Client) CollectorDay(ctx context.Context, name string, hours int) (CollectorDay, error) {
	return get[CollectorDay](ctx, c, v1("collectors", name, "use"), url.Values{"hours": {strconv.Itoa(hours)}})
}

// CollectorRuns lists runs of a collector, the newest first: those with an outcome, or all
// if it is empty. after is Next of the page before.
func (c *Client) CollectorRuns(ctx context.Context, name string, outcome bench.RunOutcome, after string) (RunList, error) {
	query := url.Values{}
	set(query, "outcome", string(outcome))
	set(query, "after", after)
	return get[RunList](ctx, c, v1("collectors", name, "runs"), query)
}

// CollectorNoise compares the noise of a collector with that of its pool.
func (c *Client) CollectorNoise(ctx context.Context, name string) (CollectorNoise, error) {
	return get[CollectorNoise](ctx, c, v1("collectors", name, "noise"), nil)
}
