package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
	"github.com/benchloom/benchloom/internal/profiler/columns"
)

// MaxProfileAttempts bounds the attempts of a run whose samples are kept: a run has one, unless its collector misbehaves.
const MaxProfileAttempts = 8

// LateProfile is the time after the end of a run in which its samples are still stored.
const LateProfile = 30 * time.Second

// ProfileError reports an upload that is not stored because it exceeds what an attempt may have.
type ProfileError struct{ Faults []profiler.Fault }

func (e *ProfileError) Error() string {
	return fmt.Sprintf("the attempt has too much: %s: %s", e.Faults[0].Where, e.Faults[0].What)
}

// ProfileReceipt says what became of an upload.
type ProfileReceipt struct {
	// Stored counts values, Repeated batches that were stored before.
	Stored, Repeated int
}

// profileAttempt is a row of profile_attempt, to which newer programs may have added columns.
type profileAttempt struct {
	ID      int64
	Name    string
	Number  int
	Part    int
	BeganAt time.Time
	Series  []profileSeries
	Ended   bool
}

// profileSeries counts what an attempt has of a series so far.
type profileSeries struct {
	profiler.Series
	Values int `json:"values"`
	// Had has a bit for each sequence number that was stored.
	Had uint64 `json:"had"`
}

const _ = uint(64 - profiler.MaxBatches) // Had has room for each

// StoreProfile stores a checked upload of a run's attempt, all of it or nothing. Batches that were stored before are left out, so
// that repeating the call changes nothing. It returns ErrNotFound for an unknown run, ErrRunClosed for one that ended longer than
// [LateProfile] ago, and a [ProfileError] for more than an attempt may have.
//
// It takes no lock that results wait for, and gives up after some seconds.
func (s *Store) StoreProfile(ctx context.Context, run bench.RunID, u profiler.Upload) (receipt ProfileReceipt, err error) {
	store := func() error {
		return s.inPlannedTx(ctx, "storing samples of run "+string(run), func(tx pgx.Tx) (err error) {
			receipt, err = storeProfile(ctx, tx, run, u)
			return err
		})
	}
	if err = store(); noPartition(err) { // no orchestrator has made them for weeks
		if _, err = s.pool.Exec(ctx, `select make_profile_partitions($1)`, partitionsAhead); err == nil {
			err = store()
		}
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "57014" && ctx.Err() == nil { // a statement has taken too long
		return ProfileReceipt{}, fmt.Errorf("%w: %w", ErrBusy, err)
	}
	if err != nil {
		return ProfileReceipt{}, err
	}
	return receipt, nil
}

func storeProfile(ctx context.Context, tx pgx.Tx, run bench.RunID, u profiler.Upload) (receipt ProfileReceipt, err error) {
	type place struct {
		Project string
		Outcome bench.RunOutcome
		Late    bool
	}
	var p place
	var attempts []profileAttempt
	ask := new(pgx.Batch) // one round trip, with the lock before the reading that it protects
	ask.Queue(`select set_config('statement_timeout', '5s', true), set_config('lock_timeout', '2s', true)`)
	queueOne(ask, &p, `
		select j.project, n.outcome, n.finished_at < now() - make_interval(secs => $2) is true as late
		from job_run n join job_queue j on j.id = n.job_id where n.id = $1`, run, LateProfile.Seconds())
	queueLock(ask, "samples of run "+string(run))
	queueAll(ask, &attempts, profileAttempts, run)
	if err := tx.SendBatch(ctx, ask).Close(); err != nil {
		return receipt, err
	}
	if p.Late {
		return receipt, fmt.Errorf("%w as %s, more than %v ago", ErrRunClosed, p.Outcome, LateProfile)
	}
	part := 1
	for _, a := range attempts {
		part = max(part, a.Part+1)
	}
	at := slices.IndexFunc(attempts, func(a profileAttempt) bool { return a.Name == u.Attempt })
	if at < 0 {
		if len(attempts) == MaxProfileAttempts {
			return receipt, &ProfileError{[]profiler.Fault{{Where: "attempt", What: fmt.Sprintf("the run has had %d attempts, and no more are kept", MaxProfileAttempts)}}}
		}
		a, err := openAttempt(ctx, tx, run, p.Project, u, len(attempts)+1)
		if err != nil {
			return receipt, err
		}
		attempts, at = append(attempts, a), len(attempts)
	}
	added, err := attempts[at].add(u)
	if err != nil {
		return receipt, err
	}
	receipt.Stored, receipt.Repeated = added.values, len(u.Batches)-len(added.samples)
	return receipt, added.write(ctx, tx, attempts[at], part, u)
}

// profileAttempts selects the attempts of run $1.
const profileAttempts = `select id, name, number, part, began_at, series, summary is not null as ended from profile_attempt where run_id = $1 order by number`

func openAttempt(ctx context.Context, tx pgx.Tx, run bench.RunID, project string, u profiler.Upload, number int) (profileAttempt, error) {
	return one[profileAttempt](ctx, tx, `
		insert into profile_attempt (run_id, name, project, host, number) values ($1, $2, $3, $4, $5)
		returning id, name, number, part, began_at, series, false as ended`, run, u.Attempt, project, u.Host, number)
}

// addition holds the new batches of an upload, column by column.
type addition struct {
	series, sequences []int16
	samples           [][]byte
	values, bytes     int
}

// add packs the batches that are new, and counts them. The error lists all excesses.
func (a *profileAttempt) add(u profiler.Upload) (added addition, err error) {
	known := make(map[profiler.Series]int, len(a.Series))
	timings := 0
	for i, s := range a.Series {
		known[s.Series] = i
		if s.Scope == profiler.ScopeTiming {
			timings++
		}
	}
	var faults []profiler.Fault
	refuse := func(i int, what string, args ...any) {
		faults = append(faults, profiler.Fault{Where: fmt.Sprintf("batches[%d]", i), What: fmt.Sprintf(what, args...)})
	}
	for i, b := range u.Batches {
		at, had := known[b.Series]
		if !had {
			switch timing := b.Scope == profiler.ScopeTiming; {
			case timing && timings >= profiler.MaxTimingSeries:
				refuse(i, "the attempt has %d phases of different names already, and no more are kept", profiler.MaxTimingSeries)
				continue
			case !timing && len(a.Series)-timings >= profiler.MaxSystemSeries:
				refuse(i, "the attempt has %d series already, and no more are kept", profiler.MaxSystemSeries)
				continue
			case timing:
				timings++
			}
			at = len(a.Series)
			known[b.Series] = at
			a.Series = append(a.Series, profileSeries{Series: b.Series})
		}
		series := &a.Series[at]
		bit := uint64(1) << b.Sequence
		if series.Had&bit != 0 {
			continue
		}
		if series.Values+len(b.Values) > profiler.MaxValues {
			refuse(i, "the series has %d values already, and no more than %d are kept", series.Values, profiler.MaxValues)
			continue
		}
		packed, err := columns.Pack(columns.Samples{Values: b.Values, Batches: b.Batches, Times: b.Times})
		if err != nil {
			return addition{}, err
		}
		series.Had |= bit
		series.Values += len(b.Values)
		added.series, added.sequences = append(added.series, int16(at)), append(added.sequences, int16(b.Sequence))
		added.samples = append(added.samples, packed)
		added.values += len(b.Values)
		added.bytes += len(packed)
	}
	if len(faults) > 0 {
		return addition{}, &ProfileError{faults}
	}
	return added, nil
}

// write writes the new batches of an upload, which is the given part of what the run has sent.
func (added addition) write(ctx context.Context, tx pgx.Tx, a profileAttempt, part int, u profiler.Upload) error {
	var batch pgx.Batch
	if len(added.samples) > 0 {
		batch.Queue(`
			insert into profile_batch (began_at, attempt, part, series, sequence, samples)
			select $1, $2, $3, x.series, x.sequence, x.samples from unnest($4::smallint[], $5::smallint[], $6::bytea[]) x (series, sequence, samples)`,
			a.BeganAt, a.ID, part, added.series, added.sequences, added.samples)
	} else if u.Summary == nil || a.Ended {
		part = a.Part // there is nothing new for followers
	}
	series, err := json.Marshal(a.Series)
	if err != nil {
		return err
	}
	absent, err := json.Marshal(append([]profiler.Absence{}, u.Absent...)) // none is []
	if err != nil {
		return err
	}
	var summary []byte
	if u.Summary != nil {
		if summary, err = json.Marshal(u.Summary); err != nil {
			return err
		}
	}
	batch.Queue(`
		update profile_attempt set part = $2, series = $3, bytes = bytes + $4, dropped = greatest(dropped, $5),
			absent = case when $6::jsonb = '[]' then absent else $6::jsonb end, summary = coalesce(summary, $7::jsonb)
		where id = $1`, a.ID, part, json.RawMessage(series), added.bytes, u.DroppedTotal, json.RawMessage(absent), nullJSON(summary))
	return tx.SendBatch(ctx, &batch).Close()
}

// nullJSON returns nil, which is null, for no bytes.
func nullJSON(text []byte) any {
	if text == nil {
		return nil
	}
	return json.RawMessage(text)
}

// noPartition reports an error of a row for which there is no partition.
func noPartition(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "23514" && e.TableName == "profile_batch"
}
