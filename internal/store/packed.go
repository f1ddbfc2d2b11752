package store

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
)

// Series is a metric of a test case, by the ID that sheets and histories carry.
type Series struct {
	ID, TestCaseID int64
	TestCase       bench.TestCase
	Metric         bench.Metric
}

// keptSeries bounds the names of series that a process keeps; some 300 bytes each.
const keptSeries = 100_000

// seriesNames keeps the names of series by their IDs: a comparison asks for thousands. It is
// safe for concurrent use.
type seriesNames struct {
	mu   sync.RWMutex
	kept map[int64]*Series
}

// of returns the names of series in their order, nil for those that are not kept.
func (n *seriesNames) of(ids []int64) []*Series {
	names := make([]*Series, len(ids))
	n.mu.RLock()
	defer n.mu.RUnlock()
	for i, id := range ids {
		names[i] = n.kept[id]
	}
	return names
}

// keep keeps names. It begins anew if they are too many.
func (n *seriesNames) keep(names []*Series) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kept == nil || len(n.kept)+len(names) > keptSeries {
		n.kept = make(map[int64]*Series, len(names))
	}
	for _, name := range names {
		n.kept[name.ID] = name
	}
}

// seriesByID returns the names of series. A series never changes, so those that were read
// once are kept.
func (s *Store) seriesByID(ctx context.Context, q querier, ids []int64) (map[int64]Series, error) {
	names := make(map[int64]Series, len(ids))
	var unknown []int64
	for i, kept := range s.series.of(ids) {
		if kept != nil {
			names[ids[i]] = *kept
		} else {
			unknown = append(unknown, ids[i])
		}
	}
	if len(unknown) == 0 {
		return names, nil
	}
	found, err := all[seriesRow](ctx, q, seriesColumns+` where se.id = any($1)`, unknown)
	if err != nil {
		return nil, err
	}
	shared := make(map[bench.TestCase]bench.TestCase) // the metrics of a test case share its texts
	read := make([]*Series, 0, len(found))
	for _, r := range found {
		name := r.series()
		if same, known := shared[name.TestCase]; known {
			name.TestCase = same
		} else {
			shared[name.TestCase] = name.TestCase
		}
		names[r.ID] = name
		read = append(read, &name)
	}
	s.series.keep(read)
	return names, nil
}

type seriesRow struct {
	ID, TestCaseID int64
	bench.TestCase
	Metric bench.Metric
}

func (r seriesRow) series() Series { return Series{r.ID, r.TestCaseID, r.TestCase, r.Metric} }

const seriesColumns = `select se.id, tc.id as test_case_id, tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target, se.metric
	from pstat_series se join test_case tc on tc.id = se.test_case_id`

// sheetRow is a row of the table.
type sheetRow struct {
	ArtifactID int64
	Metric     bench.Metric
	bench.Surrounding
	Packed []byte
}

// sheetsOf reads the sheets of artifacts, by artifact. It leaves out artifacts that are
// stale, have none, or have one that cannot be read, such as of another version. It is one
// statement, and so returns one state of the results.
func sheetsOf(ctx context.Context, q querier, artifacts []int64, metrics []bench.Metric) (map[int64]map[sheetKey]packed.Sheet, error) {
	rows, err := all[sheetRow](ctx, q, `
		select s.artifact_id, s.metric, s.size_class, s.hardware_id, s.co_located, s.packed from sheet s
		where s.artifact_id = any(@artifacts::bigint[]) and (cardinality(@metrics::text[]) = 0 or s.metric = any(@metrics::text[]))
			and not exists (select from stale_result m where m.artifact_id = s.artifact_id)`,
		pgx.NamedArgs{"artifacts": artifacts, "metrics": texts(metrics)})
	if err != nil {
		return nil, err
	}
	sheets := make(map[int64]map[sheetKey]packed.Sheet)
	unread := make(map[int64]bool)
	for _, r := range rows {
		at := sheetKey{r.Metric, r.Surrounding}
		sheet, err := packed.UnpackSheet(r.Packed)
		if err != nil {
			unread[r.ArtifactID] = true
			continue
		}
		if sheets[r.ArtifactID] == nil {
			sheets[r.ArtifactID] = make(map[sheetKey]packed.Sheet)
		}
		sheets[r.ArtifactID][at] = sheet
	}
	maps.DeleteFunc(sheets, func(artifact int64, _ map[sheetKey]packed.Sheet) bool { return unread[artifact] })
	return sheets, nil
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, m := range list {
		out[i] = string(m)
	}
	return out
}

// ArtifactSheets holds the sheets of an artifact, by metric, then by surrounding.
type ArtifactSheets struct {
	Tag    string
	Sheets []SurroundedSheet
}

// SurroundedSheet is a sheet with what its series share.
type SurroundedSheet struct {
	// Metric is without the line that it belongs to; [Store.SeriesOf] has that.
	Metric bench.Metric
	bench.Surrounding
	packed.Sheet
}

// Sheets reads the latest values of artifacts, each as [Store.SamplesOf] does: in the order
// of the tags, unknown ones without sheets. metrics narrows them down to some, named
// without their lines; empty: all. Pair series by their IDs.
func (s *Store) Sheets(ctx context.Context, project string, tags []string, metrics []bench.Metric) ([]ArtifactSheets, error) {
	list := make([]ArtifactSheets, len(tags))
	err := s.reading(ctx, func(tx pgx.Tx) error {
		ids, err := artifactIDs(ctx, tx, project, tags)
		if err != nil {
			return err
		}
		sheets, err := sheetsOf(ctx, tx, ids, metrics)
		if err != nil {
			return err
		}
		for i, id := range ids {
			list[i].Tag = tags[i]
			if id == 0 {
				continue
			}
			own, there := sheets[id]
			if !there {
				if own, err = rawSheets(ctx, tx, id); err != nil {
					return err
				}
			}
			for at, sheet := range own {
				if len(metrics) == 0 || slices.Contains(metrics, at.Metric) {
					list[i].Sheets = append(list[i].Sheets, SurroundedSheet{at.Metric, at.Surrounding, sheet})
				}
			}
			slices.SortFunc(list[i].Sheets, func(a, b SurroundedSheet) int {
				return compareSheetKeys(sheetKey{a.Metric, a.Surrounding}, sheetKey{b.Metric, b.Surrounding})
			})
		}
		return nil
	})
	return list, wrap("reading the sheets of project "+project, err)
}

// artifactIDs returns the IDs of artifacts in the order of their tags; 0: unknown.
func artifactIDs(ctx context.Context, q querier, project string, tags []string) ([]int64, error) {
	return column[int64](ctx, q, `
		select coalesce(a.id, 0) from unnest($2::text[]) with ordinality as t (tag, place)
		left join artifact a on a.project = $1 and a.tag = t.tag order by t.place`, project, tags)
}

// reading runs f on one state of the record.
func (s *Store) reading(ctx context.Context, f func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.reports, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, f)
}

type stripRow struct {
	SeriesID int64
	bench.Surrounding
	FirstArtifact, LastArtifact int64
	Packed                      []byte
}

func (r stripRow) key() stripKey { return stripKey{r.SeriesID, r.Surrounding} }
