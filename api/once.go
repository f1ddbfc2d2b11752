package api

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// onceAPage reads what is named once for all calls that a page needs until it is written: most of
// them name its project and its artifacts. A call that changes something reads each time.
type onceAPage struct{ NamedRecord }

func (r onceAPage) Project(ctx context.Context, name string) (store.Project, error) {
	return once(ctx, named[store.Project]{name: name}, func() (store.Project, error) { return r.NamedRecord.Project(ctx, name) })
}

func (r onceAPage) RequestByTag(ctx context.Context, project, tag string) (bench.Request, error) {
	return once(ctx, named[bench.Request]{project, tag}, func() (bench.Request, error) { return r.NamedRecord.RequestByTag(ctx, project, tag) })
}

// CommitsLike lists the tags that a prefix stands for. Callers share the list and must not change it.
func (r onceAPage) CommitsLike(ctx context.Context, project, prefix string) ([]string, error) {
	return once(ctx, named[[]string]{project, prefix}, func() ([]string, error) { return r.NamedRecord.CommitsLike(ctx, project, prefix) })
}

// named is the name of a T within a project, if it belongs to one.
type named[T any] struct{ project, name string }

// once returns what a call of the same page has read under a name, else what read returns.
func once[T any](ctx context.Context, name named[T], read func() (T, error)) (T, error) {
	page := pageOf(ctx)
	if page == nil || !page.reads.Load() {
		return read()
	}
	if known, there := page.known.Load(name); there {
		return known.(T), nil //nolint:forcetypeassert // the name has the type
	}
	value, err := read()
	if err == nil {
		page.known.Store(name, value)
	}
	return value, err
}
