package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jellydator/ttlcache/v3"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// RevisionRecord reads hashes of what changes. The methods for one thing return
// store.ErrNotFound for an unknown one.
type RevisionRecord interface {
	ServiceRevision(ctx context.Context, offlineSeconds float64) (string, error)
	RequestRevision(ctx context.Context, id bench.RequestID) (string, error)
	JobRevision(ctx context.Context, key bench.JobKey) (string, error)
}

const (
	// revisionAge is the time for which a revision is answered without reading the record:
	// all who follow a subject cost one query in this time.
	revisionAge = time.Second
	// maxRevisions bounds the subjects that are remembered.
	maxRevisions = 1000
)

// revisionHandlers serve revisions.
type revisionHandlers struct {
	*base
	record RevisionRecord
	seen   *ttlcache.Cache[string, *seenRevision]
}

// seenRevision is the last revision of a subject. Callers that ask meanwhile wait for the one
// that looks.
type seenRevision struct {
	mu       sync.Mutex
	revision string
	at       time.Time
}

func newRevisionHandlers(s *base, record RevisionRecord) *revisionHandlers {
	return &revisionHandlers{s, record, ttlcache.New(ttlcache.WithCapacity[string, *seenRevision](maxRevisions))}
}

func (s *revisionHandlers) register() {
	handle(s.base, operation{id: "get-revision", method: http.MethodGet, path: "/revision", need: toRead, tag: "service",
		summary:     "Tell whether a subject has changed",
		description: "For those who show a subject and want to know when to read it again: ask again after fresh_seconds, and read when the revision differs. All who ask within a second are answered from one look."}, s.getRevision)
}

type getRevision struct {
	Subject string `query:"subject" required:"true" maxLength:"300" doc:"service, request:ID or job:KEY." example:"service"`
}

func (s *revisionHandlers) getRevision(ctx context.Context, in *getRevision) (*body[apiclient.Revision], error) {
	look, err := s.lookAt(in.Subject)
	if err != nil {
		return nil, err
	}
	item, _ := s.seen.GetOrSetFunc(in.Subject, func() *seenRevision { return &seenRevision{} })
	seen := item.Value()
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if now := s.Now(); seen.revision == "" || now.Sub(seen.at) >= revisionAge {
		revision, err := look(ctx)
		if err != nil {
			return nil, err
		}
		seen.revision, seen.at = revision, now
	}
	fresh := max(time.Millisecond, seen.at.Add(revisionAge).Sub(s.Now()))
	return answer(apiclient.Revision{Subject: in.Subject, Revision: seen.revision, FreshSeconds: fresh.Seconds()}, nil)
}

// lookAt returns the look at a subject.
func (s *revisionHandlers) lookAt(subject string) (func(ctx context.Context) (string, error), error) {
	kind, name, _ := strings.Cut(subject, ":")
	switch kind {
	case apiclient.SubjectService:
		if name == "" {
			return func(ctx context.Context) (string, error) {
				return s.record.ServiceRevision(ctx, s.OfflineAfter.Seconds())
			}, nil
		}
	case "request":
		id, err := bench.ParseRequestID(name)
		return func(ctx context.Context) (string, error) {
			revision, err := s.record.RequestRevision(ctx, id)
			return revision, unknown(err, "request", string(id))
		}, err
	case "job":
		key, err := bench.ParseJobKey(name)
		return func(ctx context.Context) (string, error) {
			revision, err := s.record.JobRevision(ctx, key)
			return revision, unknown(err, "job", string(key))
		}, err
	}
	return nil, invalid("the subject %.80q is unknown; use service, request:ID or job:KEY", subject)
}

// unknown turns the error of a look at something that is not there into a problem.
func unknown(err error, thing, name string) error {
	if errors.Is(err, store.ErrNotFound) {
		return problemf(http.StatusNotFound, "unknown-"+thing, "there is no %s %s; it may have been removed, 'benchloom status' lists what there is", thing, name)
	}
	return err
}
