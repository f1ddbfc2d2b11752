package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose/inspect"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/suite"
)

// problemf returns a problem of a kind, such as unknown-project. The detail names
// the thing, the reason and the remedy.
func problemf(status int, kind, format string, args ...any) *huma.ErrorModel {
	return &huma.ErrorModel{Type: apiclient.ProblemPrefix + kind, Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// conflict returns a problem that clients map back to a typed error.
func conflict(urn string, detail error) *huma.ErrorModel {
	return &huma.ErrorModel{Type: urn, Title: http.StatusText(http.StatusConflict), Status: http.StatusConflict, Detail: detail.Error()}
}

// invalid returns a problem with the request's contents.
func invalid(format string, args ...any) *huma.ErrorModel {
	return problemf(http.StatusUnprocessableEntity, "invalid", format, args...)
}

func writeProblem(w http.ResponseWriter, p *huma.ErrorModel) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // fails only if the client is gone
}

// problemOf turns a handler's error into a problem. Internal errors are logged here, and
// answered only with the request ID.
func (s *base) problemOf(ctx context.Context, err error) error {
	var ready *huma.ErrorModel
	var wrong *suite.Error
	unplaceable := plan.Unplaceable(err)
	var absent *plan.NoProgramError
	var full *fairshare.TooManyWaiting
	var early *fairshare.TooEarly
	var away *inspect.TemporalError
	var unknown *inspect.ShapeError
	switch {
	case errors.As(err, &ready):
		if text := err.Error(); text != ready.Detail {
			whole := *ready
			whole.Detail = text // with its context
			return &whole
		}
		return err
	case errors.As(err, &wrong):
		p := invalid("the suite is not valid: %s; 'benchloom suite check' shows the same", count(len(wrong.Problems), "problem"))
		for _, w := range wrong.Problems {
			location, _ := strings.CutSuffix(w.String(), ": "+w.Message)
			p.Errors = append(p.Errors, &huma.ErrorDetail{Location: location, Message: w.Message})
		}
		return p
	case errors.As(err, &absent):
		return problemf(http.StatusUnprocessableEntity, "no-program", "%s", absent)
	case unplaceable != nil:
		return problemf(http.StatusUnprocessableEntity, "no-collector", "%s", unplaceable)
	case errors.Is(err, plan.ErrNoCollector):
		return problemf(http.StatusUnprocessableEntity, "no-collector", "%s", err)
	case errors.As(err, &full):
		return problemf(http.StatusTooManyRequests, "too-many-waiting", "%s", full)
	case errors.As(err, &early):
		return problemf(http.StatusUnprocessableEntity, "queue-too-early", "%s", early)
	case errors.As(err, &away):
		return problemf(http.StatusServiceUnavailable, "temporal-away", "%s", away)
	case errors.As(err, &unknown):
		return problemf(http.StatusNotFound, "unknown-shape", "%s", unknown)
	case errors.Is(err, store.ErrJobClosed):
		return conflict(apiclient.ProblemJobClosed, err)
	case errors.Is(err, store.ErrNobodyWaits):
		return conflict(apiclient.ProblemNobodyWaits, err)
	case errors.Is(err, store.ErrFenced):
		return conflict(apiclient.ProblemFenced, err)
	case errors.Is(err, store.ErrNameTaken):
		return conflict(apiclient.ProblemNameTaken, err)
	case errors.Is(err, store.ErrDraining):
		return conflict(apiclient.ProblemDraining, err)
	case errors.Is(err, store.ErrOutdated):
		return conflict(apiclient.ProblemOutdated, err)
	case errors.Is(err, store.ErrUnfit):
		return conflict(apiclient.ProblemUnfit, err)
	case errors.Is(err, store.ErrElsewhere):
		return conflict(apiclient.ProblemElsewhere, err)
	case errors.Is(err, store.ErrUnderWay):
		return conflict(apiclient.ProblemUnderWay, err)
	case errors.Is(err, store.ErrStaleDispatch):
		return conflict(apiclient.ProblemStale, err)
	case errors.Is(err, store.ErrRunClosed):
		return conflict(apiclient.ProblemRunClosed, err)
	case errors.Is(err, store.ErrConflict):
		return problemf(http.StatusConflict, "conflict", "%s", err)
	case errors.Is(err, store.ErrNotFound):
		return problemf(http.StatusNotFound, "not-found", "%s", err)
	case errors.Is(err, bench.ErrInvalid):
		return invalid("%s", plain(err))
	case ctx.Err() != nil:
		return unavailable("the request was given up before it was answered")
	case store.IsTransient(err):
		s.Log.WarnContext(ctx, "the record is not available", "error", err, "request_id", requestID(ctx))
		return unavailable("the database does not answer; try again in a moment")
	}
	s.Log.ErrorContext(ctx, "request failed", "error", err, "request_id", requestID(ctx))
	return internalProblem(ctx)
}

// internalProblem names only the request ID: the reason is in the log.
func internalProblem(ctx context.Context) *huma.ErrorModel {
	return problemf(http.StatusInternalServerError, "internal", "the request failed for a reason that is not yours; the API's log has it under request ID %s", requestID(ctx))
}

// unavailable asks the client to retry in a second.
func unavailable(detail string) error {
	return huma.ErrorWithHeaders(problemf(http.StatusServiceUnavailable, "unavailable", "%s", detail), http.Header{"Retry-After": {"1"}})
}

// plain removes the text of sentinel errors, which the status already says.
func plain(err error) string {
	return strings.ReplaceAll(err.Error(), bench.ErrInvalid.Error()+": ", "")
}

// kinds of problems found by the framework, by status.
var kinds = map[int]string{
	http.StatusBadRequest:            "malformed",
	http.StatusUnauthorized:          "unauthorized",
	http.StatusForbidden:             "forbidden",
	http.StatusNotFound:              "not-found",
	http.StatusRequestTimeout:        "timeout",
	http.StatusRequestEntityTooLarge: "too-large",
	http.StatusUnsupportedMediaType:  "unsupported-media-type",
	http.StatusUnprocessableEntity:   "invalid",
	http.StatusInternalServerError:   "internal",
}

// completeProblem adds a type and a remedy to the framework's own problems. Values are
// never echoed: they may be long, or secret.
func completeProblem(_ huma.Context, _ string, v any) (any, error) {
	p, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	for _, e := range p.Errors {
		e.Value = nil
	}
	if p.Type != "" {
		return p, nil
	}
	kind, ok := kinds[p.Status]
	if !ok {
		kind = "http"
	}
	p.Type = apiclient.ProblemPrefix + kind
	switch {
	case p.Status == http.StatusUnsupportedMediaType:
		p.Detail = "the body has a type that is not understood; send application/json"
	case p.Status == http.StatusBadRequest && len(p.Errors) > 0:
		p.Detail = "the body is not valid JSON; correct it, /openapi.json describes it"
	case p.Detail == "validation failed":
		p.Detail = "the request is not valid; correct what is named below, /openapi.json describes it"
	case p.Detail == "request body is required":
		p.Detail += "; send JSON, /openapi.json describes it"
	case p.Status == http.StatusRequestEntityTooLarge:
		p.Detail = strings.Replace(p.Detail, " limit=", ", the limit is ", 1) + "; send less at once"
	}
	return p, nil
}

// noRoute answers requests for unknown paths.
func (s *base) noRoute(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := s.mux.Handler(other); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		writeProblem(w, problemf(http.StatusMethodNotAllowed, "method-not-allowed", "%s does not take %s; use %s", r.URL.Path, r.Method, strings.Join(allowed, " or ")))
		return
	}
	if wantsPage(r) {
		s.pages.NotFound(w, r)
		return
	}
	writeProblem(w, problemf(http.StatusNotFound, "no-such-path", "there is nothing at %s; /openapi.json lists what there is, below /api/v1", r.URL.Path))
}

// count writes a number with its noun.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// writeError answers with the problem of an error, outside the framework.
func (s *base) writeError(w http.ResponseWriter, r *http.Request, err error) {
	err = s.problemOf(r.Context(), err)
	var headers huma.HeadersError
	if errors.As(err, &headers) {
		for name, values := range headers.GetHeaders() {
			w.Header()[name] = values
		}
	}
	var p *huma.ErrorModel
	if errors.As(err, &p) {
		writeProblem(w, p)
	}
}
