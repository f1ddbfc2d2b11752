package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// bodyBound bounds the time in which a body must arrive.
const bodyBound = 3 * time.Minute

// Bounds of bodies in bytes. Larger ones are in [Settings].
const (
	smallBody = 64 << 10 // unless an operation says otherwise: a reason or a few names
	namesBody = 1 << 20  // the benchmarks of a suite
	// outputBody has room for twice as much output as is kept of a command.
	outputBody = 4 << 20
	factsBody  = 1 << 20 // facts of a machine, or the directories of its cache
)

// operation describes an endpoint and the role it needs.
type operation struct {
	id, method, path string
	need             access
	// owns says whose work the operation concerns, if it needs the role collector.
	owns []ownership
	// scope says what a token restricted to a project may change with it.
	scope scope
	// audit is the action that the audit records, such as "collector drain"; empty: the
	// record audits the change itself, or nothing changes.
	audit       string
	summary     string
	description string
	tag         string
	// deprecated says that another operation does the same.
	deprecated bool
	// maxBody bounds the body in bytes; 0: smallBody.
	maxBody int64
	// status of success; 0: 200, or 204 without a body.
	status int
	// gzip lets the body be compressed.
	gzip bool
	// ownChecks leaves checking the decoded body to the handler: the framework's checks copy it, and list each wrong value of millions.
	ownChecks bool
	// slots bounds the calls that are under way at once, see [base.inSlot]; 0: no bound.
	slots int
	// computes is set for calls that take much of a processor, see [computing].
	computes bool
	// before reads the body before the framework does; nil: nothing does.
	before func(ctx huma.Context, next func(huma.Context))
	// answers documents answers that the framework cannot know: not JSON, written by the
	// handler, or with another status of success.
	answers []documented
}

// documented describes an answer in the OpenAPI document: JSON of a type, text or bytes
// of media types, or both.
type documented struct {
	status int
	json   reflect.Type
	media  []string
}

func (d documented) content(schemas huma.Registry) map[string]*huma.MediaType {
	content := make(map[string]*huma.MediaType)
	if d.json != nil {
		content["application/json"] = &huma.MediaType{Schema: schemas.Schema(d.json, true, "")}
	}
	for _, m := range d.media {
		content[m] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	return content
}

// handle adds an endpoint. Errors of its handler become problems.
func handle[In, Out any](s *base, o operation, f func(ctx context.Context, in *In) (*Out, error)) {
	if o.maxBody == 0 {
		o.maxBody = min(smallBody, s.MaxBody)
	}
	op := huma.Operation{
		OperationID: o.id, Method: o.method, Path: "/api/v1" + o.path, Summary: o.summary, Description: o.description, Tags: []string{o.tag},
		Metadata: map[string]any{accessKey: o.need, scopeKey: o.scope}, MaxBodyBytes: o.maxBody, BodyReadTimeout: bodyBound, DefaultStatus: o.status,
		SkipValidateBody: o.ownChecks, Deprecated: o.deprecated,
	}
	if !o.need.open(s.OpenRead) {
		op.Security = []map[string][]string{{tokenScheme: {}}}
		op.Description += "\n\nNeeds a token with the role " + string(o.need) + "."
	}
	var zero In
	_, names := any(&zero).(worker)
	s.misdeclared = errors.Join(s.misdeclared, o.declared(&zero))
	if o.need == toCollect {
		op.Middlewares = append(op.Middlewares, s.ownPath(o.owns))
	}
	if o.slots > 0 {
		op.Middlewares = append(op.Middlewares, s.inSlot(o.slots, o.computes))
	}
	if o.gzip {
		op.Middlewares = append(op.Middlewares, s.unzip(o.maxBody))
		op.Description += "\n\nThe body may have Content-Encoding gzip."
	}
	if o.before != nil {
		op.Middlewares = append(op.Middlewares, o.before)
	}
	schemas := s.huma.OpenAPI().Components.Schemas
	op.Responses = map[string]*huma.Response{"default": {Description: "Problem", Content: map[string]*huma.MediaType{
		"application/problem+json": {Schema: schemas.Schema(reflect.TypeFor[huma.ErrorModel](), true, "")},
	}}}
	for _, d := range o.answers {
		op.Responses[strconv.Itoa(d.status)] = &huma.Response{Description: http.StatusText(d.status), Content: d.content(schemas)}
	}
	huma.Register(s.huma, op, func(ctx context.Context, in *In) (*Out, error) {
		if names {
			if err := s.ownWork(ctx, any(in).(worker).work()); err != nil {
				return nil, s.problemOf(ctx, err)
			}
		}
		if o.computes {
			leave, err := s.compute(ctx)
			if err != nil {
				return nil, s.problemOf(ctx, err)
			}
			defer leave()
		}
		out, err := f(ctx, in)
		if err == nil && o.audit != "" {
			err = s.enter(ctx, o.audit, in, out)
		}
		if err != nil {
			return nil, s.problemOf(ctx, err)
		}
		return out, nil
	})
}

// body is an answer without its own headers.
type body[T any] struct{ Body T }

// answer returns the value as a body, or the error.
func answer[T any](value T, err error) (*body[T], error) {
	if err != nil {
		return nil, err
	}
	return &body[T]{Body: value}, nil
}

// none is an empty input or answer.
type none struct{}

func (s *base) registerInfo(collectors CollectorRecord) {
	handle(s, operation{id: "info", method: http.MethodGet, path: "/info", need: anyToken, tag: "service",
		summary: "Show the version of the API and the owner of the token", description: "Temporal asks this to decide what a token may do there."},
		func(ctx context.Context, _ *none) (*body[apiclient.Info], error) {
			who := caller(ctx)
			queues, err := ownTaskQueues(ctx, collectors, who.Collector)
			return answer(apiclient.Info{
				Version: s.Version, TemporalUI: s.TemporalUI, Temporal: s.TemporalAddress, Namespace: s.Namespace,
				Principal: who.Owner, Role: who.Role, Project: who.Project, Collector: who.Collector, TaskQueues: queues, MaxBodySize: s.MaxBody,
			}, err)
		})
}

// ownTaskQueues lists the task queues that a collector, or a shared host with all of its
// slots, serves at present.
func ownTaskQueues(ctx context.Context, record CollectorRecord, name string) ([]string, error) {
	if name == "" {
		return nil, nil
	}
	all, err := record.Collectors(ctx)
	if err != nil {
		return nil, err
	}
	var queues []string
	for _, c := range all {
		if c.Name != name && bench.HostOfSlot(c.Name) != name {
			continue
		}
		own, err := record.CollectorTaskQueues(ctx, c)
		if err != nil {
			return nil, err
		}
		queues = append(queues, own...)
	}
	slices.Sort(queues)
	return slices.Compact(queues), nil
}
