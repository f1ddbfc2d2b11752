package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/store"
)

// PackedRecord keeps results packed for pages.
type PackedRecord interface {
	// CheckPacked compares at most most artifacts by ID after one with the rows of their results.
	CheckPacked(ctx context.Context, project string, after int64, most int) (store.PackedCheck, error)
	// RebuildPacked has all results of a project packed anew.
	RebuildPacked(ctx context.Context, project string, act store.Act) (store.Operation, error)
}

type packedHandlers struct {
	*base
	record PackedRecord
}

func (s *packedHandlers) register() {
	handle(s.base, operation{id: "check-results", method: http.MethodGet, path: "/projects/{project}/results/check", need: toAdmin, scope: ofProject, tag: "operators", slots: exportSlots,
		summary:     "Compare packed results with the rows that they are derived from",
		description: "A page covers some artifacts; it reads all their values. Artifacts whose results have changed since they were packed are read from the rows until they are packed again, and are only counted."}, s.check)
	handle(s.base, operation{id: "rebuild-results", method: http.MethodPost, path: "/projects/{project}/results/rebuild", need: toAdmin, scope: ofProject, tag: "operators",
		summary: "Pack all results of a project anew", description: "The orchestrator does so, the newest artifacts first. Until then results are read from their rows, which takes longer."}, s.rebuild)
}

// checkedAtOnce bounds the artifacts of one answer: reading all values of one takes up to
// some tenths of a second.
const checkedAtOnce = 16

type checkResults struct {
	Project string `path:"project" doc:"Name of the project." example:"go"`
	Cursor  string `query:"cursor" doc:"The value of next from the page before."`
}

func (s *packedHandlers) check(ctx context.Context, in *checkResults) (*body[apiclient.PackedCheck], error) {
	if _, err := s.project(ctx, in.Project, http.StatusNotFound); err != nil {
		return nil, err
	}
	var after int64
	if in.Cursor != "" {
		var err error
		if after, err = strconv.ParseInt(in.Cursor, 10, 64); err != nil || after < 1 {
			return nil, invalid("the cursor %.80q is invalid: use the value of next from the page before, or none for the first page", in.Cursor)
		}
	}
	c, err := s.record.CheckPacked(ctx, in.Project, after, checkedAtOnce)
	if err != nil {
		return nil, err
	}
	out := apiclient.PackedCheck{Artifacts: c.Artifacts, Stale: c.Stale, Sheets: c.Sheets, Points: c.Points, Differences: notNil(c.Differences)}
	if c.Next > 0 {
		out.Next = strconv.FormatInt(c.Next, 10)
	}
	return answer(out, nil)
}

type rebuildResults struct {
	Project string `path:"project" doc:"Name of the project." example:"go"`
	Body    apiclient.Act
}

func (s *packedHandlers) rebuild(ctx context.Context, in *rebuildResults) (*body[apiclient.Operation], error) {
	who, err := reasoned(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	if _, err := s.project(ctx, in.Project, http.StatusNotFound); err != nil {
		return nil, err
	}
	done, err := s.record.RebuildPacked(ctx, in.Project, who)
	return answer(operationOf(done), err)
}
