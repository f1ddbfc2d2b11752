package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// ownership names where a request of a collector says which work it concerns. Each
// operation that needs the role collector declares it, and the work has to be the
// caller's own before anything else is looked at.
type ownership string

const (
	// ownRun: the path parameter run is a run, which is the caller's once it has begun.
	ownRun ownership = "run"
	// ownName: the path parameter collector is the caller's name, or the name of its slot.
	ownName ownership = "collector"
	// ownBuild: the path parameter key is a build that an open run of the caller's needs.
	ownBuild ownership = "key"
	// ownBody: the body names the work; its type is a [worker].
	ownBody ownership = "body"
)

// worker is the input of an operation whose body names work.
type worker interface {
	// work returns what the body names; empty: nothing.
	work() work
}

// work names the collector, run and build that a collector's request concerns. Empty parts are not named.
type work struct {
	collector string
	run       bench.RunID
	build     bench.BuildKey
}

// WorkRecord tells whose work something is.
type WorkRecord interface {
	// RunCollector names the collector of a run; store.ErrNotFound: it has not begun.
	RunCollector(ctx context.Context, id bench.RunID) (string, error)
	// BuildUsers lists the collectors with an open run of a job that needs the build.
	BuildUsers(ctx context.Context, key bench.BuildKey) ([]string, error)
}

// ownWork is the one check of what a collector may do: it refuses work that is not the
// caller's. It accepts a run that has not begun, which the handler reports.
func (s *base) ownWork(ctx context.Context, w work) error {
	if w.collector != "" {
		if err := ownCollector(ctx, w.collector); err != nil {
			return err
		}
	}
	if w.run != "" {
		collector, err := s.work.RunCollector(ctx, w.run)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return err
		default:
			if err := ownCollector(ctx, collector); err != nil {
				return err
			}
		}
	}
	if w.build == "" {
		return nil
	}
	users, err := s.work.BuildUsers(ctx, w.build)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(users, func(name string) bool { return ownCollector(ctx, name) == nil }) {
		return problemf(http.StatusForbidden, "not-yours", "no open run of collector %s needs build %.12s; a build is only given to runs that measure it", caller(ctx).Collector, w.build)
	}
	return nil
}

// ownCollector refuses the token of another collector. A shared host's token also serves
// its slots.
func ownCollector(ctx context.Context, name string) error {
	if own := caller(ctx).Collector; own != name && (own == "" || own != bench.HostOfSlot(name)) {
		return problemf(http.StatusForbidden, "not-yours", "this token belongs to collector %s and gives no access to collector %s; use that collector's own", own, name)
	}
	return nil
}

// ownPath checks the work that the path names, before the body is read.
func (s *base) ownPath(owns []ownership) func(ctx huma.Context, next func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		var w work
		for _, o := range owns {
			switch o {
			case ownRun:
				w.run = bench.RunID(ctx.Param(string(o)))
			case ownName:
				w.collector = ctx.Param(string(o))
			case ownBuild:
				w.build = bench.BuildKey(ctx.Param(string(o)))
			}
		}
		if err := s.ownWork(ctx.Context(), w); err != nil {
			s.refuse(ctx, s.problemOf(ctx.Context(), err))
			return
		}
		next(ctx)
	}
}

// declared reports an operation of collectors that does not say whose work it concerns,
// or says it wrongly; in is its input.
func (o operation) declared(in any) error {
	if o.need != toCollect {
		return nil
	}
	if len(o.owns) == 0 {
		return fmt.Errorf("operation %s is for collectors and does not declare whose work it concerns", o.id)
	}
	for _, own := range o.owns {
		if own == ownBody {
			if _, ok := in.(worker); !ok {
				return fmt.Errorf("operation %s: its body is declared to name work, and does not", o.id)
			}
		} else if !strings.Contains(o.path, "{"+string(own)+"}") {
			return fmt.Errorf("operation %s: its path has no parameter %s", o.id, own)
		}
	}
	return nil
}
