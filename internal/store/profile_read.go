package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
	"github.com/benchloom/benchloom/internal/profiler/columns"
)

// Profile lists what was sampled during a run.
type Profile struct {
	// Over reports that nothing more will come.
	Over bool
	// Attempts are in the order of their beginning.
	Attempts []ProfileAttempt
}

// ProfileAttempt holds all of one attempt but its samples.
type ProfileAttempt struct {
	Name, Host string
	BeganAt    time.Time
	// Part is the last upload of it.
	Part    int
	Dropped int64
	Absent  []profiler.Absence
	// Summary is nil for an attempt that has not ended, or was cut off.
	Summary *profiler.Summary
	Series  []ProfileSeries

	id int64
}

// ProfileSeries is a series with the number of its values.
type ProfileSeries struct {
	profiler.Series
	Values int
}

// ProfileProgress returns the number of the last upload of a run, and whether nothing more will come. It replaces
// [Store.Profile] for frequent callers.
func (s *Store) ProfileProgress(ctx context.Context, run bench.RunID) (part int, over bool, err error) {
	type progress struct {
		Part int
		Over bool
	}
	p, err := one[progress](ctx, s.pool, `
		select coalesce((select max(a.part) from profile_attempt a where a.run_id = n.id), 0) as part,
			coalesce(n.finished_at < now() - make_interval(secs => $2) or n.finished_at is not null
				and (select a.summary is not null from profile_attempt a where a.run_id = n.id order by a.number desc limit 1), false) as over
		from job_run n where n.id = $1`, run, LateProfile.Seconds())
	return p.Part, p.Over, wrap("looking for samples of run "+string(run), err)
}

// Profile reads what was sampled during a run; ErrNotFound if the run is unknown.
func (s *Store) Profile(ctx context.Context, run bench.RunID) (Profile, error) {
	type state struct{ Finished, Late bool }
	doing := "reading what was sampled during run " + string(run)
	r, err := one[state](ctx, s.pool, `
		select finished_at is not null as finished, finished_at < now() - make_interval(secs => $2) is true as late
		from job_run where id = $1`, run, LateProfile.Seconds())
	if err != nil {
		return Profile{}, wrap(doing, err)
	}
	type row struct {
		ID      int64
		Name    string
		Host    string
		BeganAt time.Time
		Part    int
		Dropped int64
		Absent  []profiler.Absence
		Series  []profileSeries
		Summary *profiler.Summary
	}
	// Read after the run, so that all that a run has sent before its end is seen.
	rows, err := all[row](ctx, s.pool, `
		select id, name, host, began_at, part, dropped, absent, series, summary from profile_attempt where run_id = $1 order by number`, run)
	if err != nil {
		return Profile{}, wrap(doing, err)
	}
	p := Profile{Over: r.Late}
	for _, a := range rows {
		attempt := ProfileAttempt{
			Name: a.Name, Host: a.Host, BeganAt: a.BeganAt, Part: a.Part, Dropped: a.Dropped, Absent: a.Absent, Summary: a.Summary, id: a.ID,
			Series: make([]ProfileSeries, len(a.Series)),
		}
		for i, series := range a.Series {
			attempt.Series[i] = ProfileSeries{Series: series.Series, Values: series.Values}
		}
		p.Attempts = append(p.Attempts, attempt)
	}
	if n := len(p.Attempts); n > 0 && r.Finished && p.Attempts[n-1].Summary != nil {
		p.Over = true
	}
	return p, nil
}

const (
	// profilePage bounds the values of one answer, unless one upload has more. A usual upload has 2,000, one of an agent 54,400 at most.
	profilePage = 60_000
	// profileRows is above the number of batches in one upload.
	profileRows = 4 * (profiler.MaxSystemSeries + profiler.MaxTimingSeries)
)

// ProfileBatches reads batches of the wanted series that came after a part, in the order of their arrival. It reads whole parts and
// returns the last one; more reports that others were left out.
func (s *Store) ProfileBatches(ctx context.Context, p Profile, after int, wanted func(profiler.Series) bool) (batches []profiler.Batch, last int, more bool, err error) {
	var found []profilePart
	whole := math.MaxInt // parts up to this one were read
	last = after
	for _, a := range p.Attempts {
		last = max(last, a.Part)
		if a.Part <= after {
			continue
		}
		parts, until, err := s.profileParts(ctx, a, after, wanted)
		if err != nil {
			return nil, 0, false, fmt.Errorf("reading samples: %w", err)
		}
		found = append(found, parts...)
		whole = min(whole, until)
	}
	slices.SortStableFunc(found, func(a, b profilePart) int { return a.part - b.part })
	for _, f := range found {
		if f.part <= whole {
			batches = append(batches, f.batch)
		}
	}
	if whole < last {
		last, more = whole, true
	}
	return batches, last, more, nil
}

type profilePart struct {
	part  int
	batch profiler.Batch
}

// profileParts reads parts of an attempt. until is the last part that was read as a whole; MaxInt: all were.
func (s *Store) profileParts(ctx context.Context, a ProfileAttempt, after int, wanted func(profiler.Series) bool) (parts []profilePart, until int, err error) {
	var places []int16
	for i, series := range a.Series {
		if wanted(series.Series) {
			places = append(places, int16(i))
		}
	}
	if len(places) == 0 {
		return nil, math.MaxInt, nil
	}
	type row struct {
		Part             int
		Series, Sequence int16
		Samples          []byte
	}
	// Not beyond the part that the attempt had when its series were read.
	rows, err := all[row](ctx, s.reports, `
		select part, series, sequence, samples from profile_batch
		where began_at = $1 and attempt = $2 and part > $3 and part <= $4 and series = any($5)
		order by part, series limit $6`, a.BeganAt, a.id, after, a.Part, places, profileRows)
	if err != nil {
		return nil, 0, err
	}
	values := 0
	for i, r := range rows {
		if i > 0 && r.Part != rows[i-1].Part {
			until = rows[i-1].Part
			if values >= profilePage {
				return parts, until, nil
			}
		}
		samples, err := columns.Unpack(r.Samples)
		if err != nil {
			return nil, 0, err
		}
		series := a.Series[r.Series].Series
		values += len(samples.Values)
		parts = append(parts, profilePart{r.Part, profiler.Batch{
			Series: series, Unit: series.Unit(), Attempt: a.Name, Host: a.Host, Sequence: int(r.Sequence),
			Values: samples.Values, Batches: samples.Batches, Times: samples.Times,
		}})
	}
	if len(rows) < profileRows {
		until = math.MaxInt
	}
	return parts, until, nil
}
