package results

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"

	"github.com/benchloom/benchloom/internal/history"
	"github.com/benchloom/benchloom/internal/store"
)

// lookForDrawings begins the charts of the answer, and asks the caller for drawings of them.
func (r *historyReading) lookForDrawings() (err error) {
	for _, c := range r.charts {
		r.out.Charts = append(r.out.Charts, HistoryChart{Name: c.Name, Left: c.Left})
	}
	if r.query.Drawn == nil {
		return nil
	}
	part := r.digestPart()
	for i, c := range r.charts {
		one := &r.out.Charts[i]
		if one.Digest, err = r.digest(part, c); err != nil {
			return err
		}
		one.Drawn = r.query.Drawn(one.Digest)
	}
	return nil
}

// keep keeps what was computed if the state of the results is the same as before: else it may be of either state.
func (r *historyReading) keep(ctx context.Context) error {
	drawn := !slices.ContainsFunc(r.out.Charts, func(c HistoryChart) bool { return c.Digest != "" && !c.Drawn })
	if drawn && len(r.learned.shifts) == 0 {
		return nil // nothing was
	}
	before := r.state
	if err := r.readState(ctx); err != nil {
		return err
	}
	if r.state.Version == before.Version && maps.Equal(r.state.Changed, before.Changed) {
		r.query.Shifts.keep(r.learned)
		return nil
	}
	for i := range r.out.Charts {
		r.out.Charts[i].Digest = ""
	}
	return nil
}

// digestPart identifies what all charts share: the question, the packed results, and the artifacts.
func (r *historyReading) digestPart() string {
	sum := sha256.New()
	q := r.query
	fmt.Fprintf(sum, "%q %q %q %q %q %q %q %d %t %q\n", r.state.Version, q.Project, r.suite, r.out.Type, r.out.Metric, q.Split, q.Line, q.Columns, q.ByDate, q.Band)
	var b []byte
	for _, a := range r.out.Artifacts {
		b = binary.AppendVarint(b[:0], a.ID)
		b = binary.AppendVarint(b, a.At.UnixNano())
		if b = append(b, 0); a.Dated {
			b[len(b)-1] = 1
		}
		b = binary.AppendUvarint(b, uint64(len(a.Releases)))
		for _, release := range a.Releases {
			b = binary.AppendUvarint(b, uint64(len(release)))
			b = append(b, release...)
		}
		_, _ = sum.Write(b) // never fails
	}
	return digestOf(sum)
}

// digest identifies all that a drawing of a chart shows.
func (r *historyReading) digest(part string, c history.Chart) (string, error) {
	type line struct {
		Name     string
		Series   []int64
		Changed  []string `json:",omitempty"`
		Changes  [][]store.HistoryChange
		Failures [][]HistoryFailure
	}
	lines := make([]line, len(c.Lines))
	for i, l := range c.Lines {
		lines[i].Name = l.Name
		for _, s := range l.Series {
			found := r.found[s]
			lines[i].Series = append(lines[i].Series, found.ID)
			if changed := r.state.Changed[found.ID]; changed != "" {
				lines[i].Changed = append(lines[i].Changed, fmt.Sprint(found.ID, " ", changed))
			}
			lines[i].Changes = append(lines[i].Changes, r.changes[caseMetric{found.TestCaseID, found.Metric}])
			lines[i].Failures = append(lines[i].Failures, r.failures[found.TestCaseID])
		}
	}
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(struct {
		Part, Name string
		Left       int
		Lines      []line
	}{part, c.Name, c.Left, lines}); err != nil {
		return "", fmt.Errorf("identifying the chart %s: %w", c.Name, err)
	}
	return digestOf(sum), nil
}

func digestOf(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)[:16]) }
