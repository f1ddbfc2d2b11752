package pages

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

// collectorAPI backs the collector pages, and acts on collectors.
type collectorAPI interface {
	CollectorsWithUse(ctx context.Context) ([]apiclient.Collector, error)
	Collector(ctx context.Context, name string) (apiclient.Collector, error)
	CollectorDay(ctx context.Context, name string, hours int) (apiclient.CollectorDay, error)
	CollectorRuns(ctx context.Context, name string, outcome bench.RunOutcome, after string) (apiclient.RunList, error)
	CollectorNoise(ctx context.Context, name string) (apiclient.CollectorNoise, error)
	DrainCollector(ctx context.Context, name, reason string) (apiclient.Collector, error)
	ActivateCollector(ctx context.Context, name, reason string) (apiclient.Collector, error)
}

func (p *Pages) collectorPages() []page {
	return []page{
		{pattern: "/collectors", parameters: []string{searchParameter, onlyParameter, sortParameter, pageParameter}, show: p.collectors},
		{pattern: "/collectors/{collector}", parameters: []string{onlyParameter, pageParameter, openParameter}, show: p.collector},
	}
}

// Parameters that lists share.
const (
	// searchParameter narrows a list to rows with a text.
	searchParameter = "q"
	// onlyParameter narrows a list to rows of one kind.
	onlyParameter = "only"
	// openParameter names a part of a page that is shown in full.
	openParameter = "open"
)

// live lets a page follow a subject. It reads the subject's revision, so call it before everything
// else that the page reads.
func (v *visit) live(shown *view, subject string) error {
	now, err := v.api.Revision(v.Context(), subject)
	shown.Live, shown.Revision = subject, now.Revision
	return err
}

// listed bounds the rows of a list that is not paged by the API.
const listed = 200

// part returns the rows of the page that the address numbers, with most rows per page, and the value
// of the parameter for the next page; empty: this is the last.
func part[T any](v *visit, rows []T, most int) ([]T, string, error) {
	number := 1
	if given := v.get(pageParameter); given != "" {
		var err error
		if number, err = strconv.Atoi(given); err != nil || number < 1 {
			return nil, "", badParameter(pageParameter, given, "pages are numbered from 1")
		}
	}
	last := (len(rows) + most - 1) / most
	if number > max(1, last) {
		return nil, "", badParameter(pageParameter, v.get(pageParameter), fmt.Sprintf("there are %s", cli.Plural(max(1, last), "page")))
	}
	next := ""
	if number < last {
		next = strconv.Itoa(number + 1)
	}
	return rows[(number-1)*most : min(number*most, len(rows))], next, nil
}

// matches reports whether one of the texts contains the visitor's search text.
func matches(v *visit, texts ...string) bool {
	wanted := strings.ToLower(strings.TrimSpace(v.get(searchParameter)))
	return wanted == "" || slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), wanted) })
}

// setAside is the word for a collector that is inactive because it was disturbed.
const setAside = "set aside"

// collectorStates lists the words for the states of collectors, by which the list can be
// narrowed.
var collectorStates = []string{
	string(bench.CollectorBenchmarking), string(bench.CollectorWaiting), string(bench.CollectorDraining), string(bench.CollectorInactive),
	string(bench.CollectorOffline), setAside,
}

// collectorRow is a collector in a list.
type collectorRow struct{ apiclient.Collector }

// Word is the word for its state.
func (c collectorRow) Word() string {
	if c.SetAsideAt != nil && c.State != bench.CollectorOffline {
		return setAside
	}
	return string(c.State)
}

// Outdated reports whether it must run another version.
func (c collectorRow) Outdated() bool { return c.WantedVersion != "" && c.WantedVersion != c.Version }

// pool identifies the collector's pool in the list.
func (c collectorRow) pool() string { return fmt.Sprintf("%s/%d/%s", c.Target, c.SizeClass, c.Pool) }

// Busy is the share of the last day in which it had a run.
func (c collectorRow) Busy() float64 {
	if c.Use == nil {
		return 0
	}
	return c.Use.Share
}

// poolView is a pool with its collectors.
type poolView struct {
	ID          string
	Name        string
	Target      bench.Target
	SizeClass   bench.SizeClass
	Collectors  []collectorRow
	Live, Total int
	Hardware    []string
}

// Mixed reports whether its collectors are not interchangeable.
func (p poolView) Mixed() bool { return len(p.Hardware) > 1 }

type collectorsView struct {
	Search, Only string
	States       []string
	Pools        []poolView
	Order        order
	Next         string
	// Registered counts all collectors, Found those that match.
	Registered, Found int
}

// collectors lists the collectors by pool.
func (p *Pages) collectors(v *visit) (*view, error) {
	out := &view{template: "collectors", Title: "Collectors", Area: "/collectors", APIPath: "/api/v1/collectors?use=true", Command: "benchloom collector list"}
	if err := v.live(out, apiclient.SubjectService); err != nil {
		return nil, err
	}
	all, err := v.api.CollectorsWithUse(v.Context())
	if err != nil {
		return nil, err
	}
	shown := collectorsView{Search: v.get(searchParameter), Only: v.get(onlyParameter), States: collectorStates, Registered: len(all)}
	if shown.Only != "" && !slices.Contains(collectorStates, shown.Only) {
		return nil, badParameter(onlyParameter, shown.Only, "the states are "+strings.Join(collectorStates, ", "))
	}
	var rows []collectorRow
	for _, c := range all {
		row := collectorRow{c}
		if (shown.Only == "" || shown.Only == row.Word()) && matches(v, c.Name, string(c.Target), c.Pool, c.Host, c.MachineGroup) {
			rows = append(rows, row)
		}
	}
	shown.Found = len(rows)
	if shown.Order, err = sorted(v, rows,
		by("name", func(c collectorRow) string { return c.Name }),
		by("state", func(c collectorRow) string { return c.Word() }),
		by("heartbeat", func(c collectorRow) int64 { return -c.LastHeartbeat.UnixNano() }),
		by("use", collectorRow.Busy),
		by("lost", func(c collectorRow) int { return lost(c.Use) }),
		by("version", func(c collectorRow) string { return c.Version }),
	); err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b collectorRow) int { return strings.Compare(a.pool(), b.pool()) })
	if rows, shown.Next, err = part(v, rows, listed); err != nil {
		return nil, err
	}
	shown.Pools = pools(rows, all)
	out.Content = shown
	return out, nil
}

func lost(use *apiclient.CollectorUse) int {
	if use == nil {
		return 0
	}
	return use.Lost
}

// pools divides rows, which are ordered by pool, and describes the pools by all their collectors.
func pools(rows []collectorRow, all []apiclient.Collector) []poolView {
	var out []poolView
	for _, row := range rows {
		if id := row.pool(); len(out) == 0 || out[len(out)-1].ID != id {
			out = append(out, poolView{ID: id, Name: row.Pool, Target: row.Target, SizeClass: row.SizeClass})
		}
		last := &out[len(out)-1]
		last.Collectors = append(last.Collectors, row)
	}
	for i := range out {
		for _, c := range all {
			if (collectorRow{c}).pool() != out[i].ID {
				continue
			}
			out[i].Total++
			if c.State == bench.CollectorWaiting || c.State == bench.CollectorBenchmarking {
				out[i].Live++
			}
			if !slices.Contains(out[i].Hardware, c.HardwareID) {
				out[i].Hardware = append(out[i].Hardware, c.HardwareID)
			}
		}
	}
	return out
}

// useHours is the period of a collector's use.
const useHours = 24

// bar is a rectangle of a drawing.
type bar struct {
	X, Y, Width, Height float64
	Class, Title        string
}

// runOutcomes lists the words by which a collector's runs can be narrowed.
var runOutcomes = []string{"lost", "failure", "timeout", "oom", "too_small", "permanent", "cancelled", "success", "running"}

type collectorView struct {
	collectorRow
	Day      apiclient.CollectorDay
	Bars     []bar
	Only     string
	Outcomes []string
	Runs     apiclient.RunList
	Noise    apiclient.CollectorNoise
	// Noisiest are the shown series; the whole answer on request.
	Noisiest []apiclient.NoiseBeside
	Whole    bool
	Facts    []fact
	Action   act
}

// fact is a named text.
type fact struct{ Name, Text string }

// shownNoise bounds the series of a collector's noise unless all are asked for.
const shownNoise = 15

// collector shows one collector.
func (p *Pages) collector(v *visit) (*view, error) {
	name := v.PathValue("collector")
	out := &view{
		template: "collector", Title: "Collector " + name, Area: "/collectors", Crumbs: []link{{"/collectors", "Collectors"}},
		APIPath: "/api/v1/collectors/" + segments(name), Command: "benchloom collector show " + name,
	}
	if err := v.live(out, apiclient.SubjectService); err != nil {
		return nil, err
	}
	c, err := v.api.Collector(v.Context(), name)
	if err != nil {
		return nil, err
	}
	shown := collectorView{collectorRow: collectorRow{c}, Only: v.get(onlyParameter), Outcomes: runOutcomes, Facts: factsOf(c.Facts)}
	if shown.Only != "" && !slices.Contains(runOutcomes, shown.Only) {
		return nil, badParameter(onlyParameter, shown.Only, "the outcomes are "+strings.Join(runOutcomes, ", "))
	}
	if open := v.get(openParameter); open != "" && open != "noise" {
		return nil, badParameter(openParameter, open, "it is noise, or left out")
	}
	shown.Whole = v.get(openParameter) == "noise"
	if shown.Day, err = v.api.CollectorDay(v.Context(), name, useHours); err != nil {
		return nil, err
	}
	shown.Bars = hourBars(shown.Day.Hours)
	if shown.Runs, err = v.api.CollectorRuns(v.Context(), name, bench.RunOutcome(shown.Only), v.get(pageParameter)); err != nil {
		return nil, err
	}
	if shown.Noise, err = v.api.CollectorNoise(v.Context(), name); err != nil {
		return nil, err
	}
	shown.Noisiest = shown.Noise.Series
	if !shown.Whole {
		shown.Noisiest = shown.Noisiest[:min(len(shown.Noisiest), shownNoise)]
	}
	if shown.Action, err = p.collectorAct(v, shown.collectorRow); err != nil {
		return nil, err
	}
	out.Content = shown
	return out, nil
}

// collectorAct offers to drain a collector, or to activate it.
func (p *Pages) collectorAct(v *visit, c collectorRow) (act, error) {
	base := "/collectors/" + segments(c.Name) + "/"
	if !c.Stuck && (c.State == bench.CollectorDraining || c.State == bench.CollectorInactive || c.SetAsideAt != nil) {
		return p.offer(v, rightToAdmin, "", act{
			Name: "activate", Title: "Activate", About: "It takes jobs again, and is judged by its later runs only.",
			Address: base + "activate", Command: quoted("benchloom", "collector", "activate", c.Name, "--reason", "WHY"),
		})
	}
	return p.offer(v, rightToAdmin, "", act{
		Name: "drain", Title: "Drain", About: "It finishes its job and takes no other, until it is activated.",
		Address: base + "drain", Command: quoted("benchloom", "collector", "drain", c.Name, "--reason", "WHY"),
	})
}

// collectorActions drain and activate collectors. The audit shows the effect.
func (p *Pages) collectorActions() []action {
	on := func(name string, do func(api API, ctx context.Context, collector, reason string) (apiclient.Collector, error)) action {
		return action{"/collectors/{collector}/" + name, func(v *visit) (string, error) {
			c, err := do(v.api, v.Context(), v.PathValue("collector"), v.sent().Reason)
			return "/collectors/" + segments(c.Name), err
		}}
	}
	return []action{on("drain", API.DrainCollector), on("activate", API.ActivateCollector)}
}

// Dimensions of the drawing of a day, in units of its view box.
const (
	hourWidth  = 10
	hourHeight = 24
)

// hourBars draws the use of hours: a full hour is as high as the drawing.
func hourBars(hours []apiclient.UsedHour) []bar {
	bars := make([]bar, len(hours))
	for i, h := range hours {
		height := math.Round(hourHeight*min(1, h.Seconds/3600)*10) / 10
		if h.Seconds > 0 {
			height = max(1, height) // stays visible
		}
		bars[i] = bar{
			X: float64(i * hourWidth), Y: hourHeight - height, Width: hourWidth - 1, Height: height, Class: "active",
			Title: fmt.Sprintf("%s UTC: %.0f %%", h.Since.UTC().Format("15:04"), h.Seconds/36),
		}
	}
	return bars
}

// noisier compares two spreads in words.
func noisier(own, pool float64) string {
	switch {
	case pool == 0 && own == 0:
		return "none"
	case own == 0: // it has not measured the series
		return "–"
	case pool == 0:
		return "its pool has none"
	}
	return fmt.Sprintf("%.2f ×", own/pool)
}

// spread writes a relative standard deviation.
func spread(share float64) string {
	switch {
	case share == 0:
		return "–"
	case share < 0.0001:
		return "< 0.01 %"
	}
	return fmt.Sprintf("%.3g %%", share*100)
}

// share writes a part of a whole, a number or a pointer to one, in percent.
func share(part any) string {
	switch part := part.(type) {
	case float64:
		if 0 < part && part < 0.005 {
			return "< 1 %"
		}
		return fmt.Sprintf("%.0f %%", 100*part)
	case *float64:
		return share(*part)
	}
	return ""
}

// lasted writes how long a run took, or has taken so far.
func lasted(now time.Time, r apiclient.Run) string { return took(now, &r.StartedAt, r.FinishedAt) }
