package pages

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/chart"
	"github.com/benchloom/benchloom/internal/profiler"
)

// profileAPI reads the samples of runs.
type profileAPI interface {
	Profile(ctx context.Context, run bench.RunID) (apiclient.Profile, error)
	ProfileMetrics(ctx context.Context, run bench.RunID, from int, series ...string) (apiclient.ProfileMetrics, error)
}

// Parameters of the samples of a run, besides from and to, which are seconds since its beginning.
const (
	attemptParameter = "attempt"
	scopeParameter   = "scope"
)

// openCommands opens all measured commands.
const openCommands = "commands"

var profileScopes = []string{string(profiler.ScopeJob), string(profiler.ScopeMachine)}

// profileQuery holds the parameters of the address.
type profileQuery struct {
	// From and To are seconds since the run's beginning; 0: as far as the samples go.
	From, To float64
	Scope    profiler.Scope
	Metric   profiler.Metric
	// Attempt counts from 1; 0: the last one.
	Attempt int
	// All measured commands are listed.
	All bool
}

// readProfileQuery reads the parameters of the address, and refuses unknown values.
func readProfileQuery(v *visit) (q profileQuery, err error) {
	for name, at := range map[string]*float64{fromParameter: &q.From, toParameter: &q.To} {
		given := v.get(name)
		if given == "" {
			continue
		}
		if *at, err = strconv.ParseFloat(given, 64); err != nil || !(*at >= 0 && *at <= 1e9) {
			return q, badParameter(name, given, "it is a number of seconds since the beginning of the run")
		}
	}
	if to := v.get(toParameter); to != "" && q.From >= q.To {
		return q, badParameter(toParameter, to, "the part must end after it begins")
	}
	if scope := v.get(scopeParameter); scope != "" {
		if !slices.Contains(profileScopes, scope) {
			return q, badParameter(scopeParameter, scope, "it may be "+joined(profileScopes))
		}
		q.Scope = profiler.Scope(scope)
	}
	if q.Metric = profiler.Metric(v.get(metricParameter)); q.Metric != "" && (profiler.Series{Name: string(q.Metric)}).Unit() == "" {
		return q, badParameter(metricParameter, string(q.Metric), "it is the name of a metric, such as "+string(profiler.CPUUsed))
	}
	if given := v.get(attemptParameter); given != "" {
		if q.Attempt, err = strconv.Atoi(given); err != nil || q.Attempt < 1 {
			return q, badParameter(attemptParameter, given, "attempts are numbered from 1")
		}
	}
	if open := v.get(openParameter); open != "" {
		if open != openCommands {
			return q, badParameter(openParameter, open, "it may be "+openCommands)
		}
		q.All = true
	}
	return q, nil
}

// profileView shows the samples of one attempt at a run.
type profileView struct {
	profileQuery
	State apiclient.ProfileState
	// Over is set if nothing more will arrive.
	Over bool
	// Unread is set, and nothing else, if samples could not be read.
	Unread bool
	// Off is set if the project switches profiling off.
	Off      bool
	Attempts []profileAttempt
	// Shown is the attempt that is shown; the zero value if there is none.
	Shown apiclient.ProfileAttempt
	// Summed is set if the attempt has a summary.
	Summed bool
	// Shifted is set if times count from the first sample, because the clocks of the collector and of the service differ.
	Shifted bool
	// Cut is set if there is too much to read everything.
	Cut             bool
	Scopes, Metrics []string
	Zooms           []profileZoom
	Lanes           phaseLanes
	Charts          []profileChart
	// Left counts the charts that are not shown.
	Left     int
	Phases   []profiler.PhaseSummary
	Commands commandTable
	// JSON is the address of all samples, Command that of the command line that writes them.
	JSON, Command string
}

// profileAttempt leads to one of several attempts.
type profileAttempt struct {
	Number  int
	Partial bool
	Shown   bool
}

// profileZoom is another part of the time, in seconds since the run's beginning.
type profileZoom struct{ From, To, Text string }

// maxSampled bounds the values that are read for a page: some 300 series of five minutes.
const maxSampled = 1_000_000

// samples holds the series and the summary of one attempt.
type samples struct {
	series map[profiler.Series]*sampledSeries
	// summary is nil while there is none.
	summary *profiler.Summary
	// origin is the moment from which seconds count, end the last second.
	origin time.Time
	end    float64
	// measured has the time of each measured command that was timed, in seconds.
	measured map[int]chart.Stretch
}

// sampledSeries are the values of a series, ordered by time.
type sampledSeries struct {
	profiler.Series
	unit profiler.Unit
	// at are seconds.
	at, values []float64
	batches    []int
}

// profile shows the samples of a run. A failure to read them leaves the rest of the page as it is.
func (p *Pages) profile(v *visit, r apiclient.RunDetail, q profileQuery) (profileView, error) {
	out := profileView{
		profileQuery: q, Scopes: profileScopes,
		JSON: "/api/v1/runs/" + segments(r.ID) + "/profile/metrics", Command: "benchloom run show " + string(r.ID) + " --metrics -o csv",
	}
	found, err := v.api.Profile(v.Context(), r.ID)
	if err != nil {
		return out.unread(v, r.ID, err)
	}
	out.State, out.Over = found.State, found.Over
	if len(found.Attempts) == 0 {
		if q.Attempt > 0 {
			return out, badParameter(attemptParameter, strconv.Itoa(q.Attempt), "nothing was sampled during this run")
		}
		return out, out.whyNone(v, r)
	}
	number := cmp.Or(q.Attempt, len(found.Attempts))
	if number > len(found.Attempts) {
		return out, badParameter(attemptParameter, strconv.Itoa(number), "there are "+plural(len(found.Attempts), "attempt"))
	}
	out.Shown = found.Attempts[number-1]
	for i, a := range found.Attempts {
		out.Attempts = append(out.Attempts, profileAttempt{Number: i + 1, Partial: a.Partial, Shown: i+1 == number})
	}
	plots, left := out.plots()
	out.Left = left
	read, cut, err := p.readSamples(v, r.ID, out.Shown, q, found.Over, plots)
	if err != nil {
		return out.unread(v, r.ID, err)
	}
	out.Cut, out.Summed = cut, read.summary != nil
	out.Shifted = read.place(r, v.now)
	out.show(read, plots)
	return out, nil
}

// unread says that nothing could be read, unless the visitor has gone.
func (p profileView) unread(v *visit, id bench.RunID, err error) (profileView, error) {
	if v.Context().Err() != nil {
		return p, err
	}
	v.log.WarnContext(v.Context(), "what was sampled during a run could not be read", "run", id, "error", err)
	p.Unread = true
	return p, nil
}

// whyNone looks for the reason why nothing was sampled.
func (p *profileView) whyNone(v *visit, r apiclient.RunDetail) error {
	if !p.Over {
		return nil
	}
	of, err := v.api.Project(v.Context(), r.Project)
	if err != nil {
		return err
	}
	enabled := of.Config.Profiling.Enabled
	p.Off = enabled != nil && !*enabled
	return nil
}

// readSamples reads the series of an attempt that are drawn, and its timings. Nothing more arrives once the run is over.
func (p *Pages) readSamples(v *visit, id bench.RunID, of apiclient.ProfileAttempt, q profileQuery, over bool, plots []plot) (s samples, cut bool, err error) {
	s = samples{series: make(map[profiler.Series]*sampledSeries), measured: make(map[int]chart.Stretch)}
	names := []string{string(profiler.ScopeTiming) + "/" + phaseMeasuring}
	for _, series := range of.Series {
		if series.Scope == profiler.ScopeTiming {
			names = append(names, series.String())
		}
	}
	for _, one := range plots {
		for _, series := range one.series {
			names = append(names, series.String())
		}
	}
	key := samplesKey{id, of.Attempt, q.Scope, q.Metric}
	part, cut, err := p.samples.of(key, names).read(v, id, of, names)
	if err != nil {
		return s, false, err
	}
	if over || cut {
		p.samples.drop(key)
	} else {
		p.samples.keep(key, part)
	}
	s.summary = part.summary
	byName := make(map[profiler.Series][]profiler.Batch)
	for _, b := range part.batches {
		if slices.Contains(names, b.String()) { // others were read before
			byName[b.Series] = append(byName[b.Series], b)
		}
	}
	s.origin = origin(byName)
	for series, batches := range byName {
		slices.SortFunc(batches, func(a, b profiler.Batch) int { return cmp.Compare(a.Sequence, b.Sequence) })
		one := &sampledSeries{Series: series, unit: batches[0].Unit}
		for _, b := range batches {
			for _, t := range b.Times {
				one.at = append(one.at, t.Sub(s.origin).Seconds())
			}
			one.values, one.batches = append(one.values, b.Values...), append(one.batches, b.Batches...)
		}
		s.series[series] = one
	}
	return s, cut, nil
}

// origin returns when the first sample or timing begins; a timing has the time of its end.
func origin(byName map[profiler.Series][]profiler.Batch) (first time.Time) {
	for series, batches := range byName {
		for _, b := range batches {
			for i, t := range b.Times {
				if series.Scope == profiler.ScopeTiming {
					t = t.Add(-time.Duration(b.Values[i] * float64(time.Second)))
				}
				if first.IsZero() || t.Before(first) {
					first = t
				}
			}
		}
	}
	return first
}

// clockSlack bounds the difference between the clocks of collector and service that is not mentioned.
const clockSlack = 2 * time.Second

// place makes seconds count from the beginning of the run, and finds the last second. It reports whether they count from the first
// sample instead, because that sample does not lie within the run.
func (s *samples) place(r apiclient.RunDetail, now time.Time) (shifted bool) {
	end := now
	if r.FinishedAt != nil {
		end = *r.FinishedAt
	}
	offset := s.origin.Sub(r.StartedAt)
	if shifted = s.origin.Before(r.StartedAt.Add(-clockSlack)) || s.origin.After(end.Add(clockSlack)); shifted {
		offset = 0
	}
	for _, one := range s.series {
		for i := range one.at {
			one.at[i] = max(0, one.at[i]+offset.Seconds())
			s.end = max(s.end, one.at[i])
		}
	}
	if measuring, ok := s.series[profiler.Series{Scope: profiler.ScopeTiming, Name: phaseMeasuring}]; ok {
		for i, at := range measuring.at {
			s.measured[measuring.batches[i]] = chart.Stretch{From: max(0, at-measuring.values[i]), To: at}
		}
	}
	return shifted
}

// show draws the samples.
func (p *profileView) show(s samples, plots []plot) {
	if p.To == 0 {
		p.To = max(s.end, p.From)
	}
	if p.To <= p.From { // nothing, or one moment
		p.To = p.From + 1
	}
	p.zooms(s.end)
	p.Lanes = phaseLanesOf(s, p.From, p.To)
	shades := shadesOf(s)
	for i, one := range plots {
		p.Charts = append(p.Charts, one.draw(fmt.Sprintf("profile-%d", i), s, p.From, p.To, shades))
	}
	p.Phases = phasesOf(s)
	p.Commands = p.commandsOf(s)
}

// zooms adds links to other parts of the time.
func (p *profileView) zooms(end float64) {
	length := p.To - p.From
	add := func(from, to float64, words string) {
		p.Zooms = append(p.Zooms, profileZoom{secondsParameter(from), secondsParameter(to), words})
	}
	if length > 0.2 { // below, there is hardly a sample
		add(p.From, p.From+length/2, "first half")
		add(p.From+length/2, p.To, "second half")
	}
	if p.From > 0 {
		before := max(0, p.From-length)
		add(before, before+length, "earlier")
	}
	if p.To < end {
		add(p.To, p.To+length, "later")
	}
	if p.From > 0 || p.To < end {
		p.Zooms = append(p.Zooms, profileZoom{Text: "whole run"})
	}
}

// secondsParameter writes seconds for an address, to the millisecond.
func secondsParameter(s float64) string {
	return strconv.FormatFloat(math.Round(s*1000)/1000, 'f', -1, 64)
}

// Between says in words which part is shown.
func (p profileView) Between() string {
	return fmt.Sprintf("From second %s to %s of the run.", secondsParameter(p.From), secondsParameter(p.To))
}

// phasesOf sums up the phases, from the summary or else from what is known so far, the longest in total first.
func phasesOf(s samples) []profiler.PhaseSummary {
	var out []profiler.PhaseSummary
	if s.summary != nil {
		out = slices.Clone(s.summary.Phases)
	} else {
		for series, one := range s.series {
			if series.Scope != profiler.ScopeTiming {
				continue
			}
			phase := profiler.PhaseSummary{Name: series.Name, Count: len(one.values)}
			for _, took := range one.values {
				phase.TotalSeconds += took
				phase.LongestSeconds = max(phase.LongestSeconds, took)
			}
			out = append(out, phase)
		}
	}
	slices.SortFunc(out, func(a, b profiler.PhaseSummary) int {
		return cmp.Or(cmp.Compare(b.TotalSeconds, a.TotalSeconds), cmp.Compare(a.Name, b.Name))
	})
	return out
}
