package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/uber-go/tally/v4"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/benchloom/benchloom/api/pages"
	"github.com/benchloom/benchloom/internal/blobs"
	"github.com/benchloom/benchloom/internal/diskspace"
	"github.com/benchloom/benchloom/internal/lately"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/strictjson"
	"github.com/benchloom/benchloom/internal/suite"
	"github.com/benchloom/benchloom/internal/suitecache"
	"github.com/benchloom/benchloom/internal/webguard"
)

// Config of the API. Store, Starter, Dispatcher, Inspector, Now, Log and Random must be
// set.
type Config struct {
	Store   Store
	Starter Starter
	// Dispatcher hands out submitted jobs immediately.
	Dispatcher Dispatcher
	// Inspector explains the state of requests and jobs.
	Inspector Inspector
	// Blobs keeps the files of runs and profiles; nil: nothing does.
	Blobs blobs.Store
	Settings
}

// Settings are seen by all handlers.
type Settings struct {
	// Now is the clock.
	Now func() time.Time
	Log *slog.Logger
	// Random draws request IDs; crypto/rand.Reader is one.
	Random io.Reader
	// Version of the program.
	Version string
	// TemporalUI is the address of the Temporal Web UI; empty: unknown.
	TemporalUI string
	// TemporalAddress is the address of Temporal for collectors on other machines, sent
	// to them at enrolment; empty: unknown.
	TemporalAddress string
	// TemporalUISocket is the Unix socket of the embedded Temporal's Web UI, for
	// [Handler.TemporalUI].
	TemporalUISocket string
	// TemporalTokens is set if Temporal asks the API for a token's owner: collectors then send it
	// theirs.
	TemporalTokens bool
	// InvitedOnly refuses collectors without an invitation. Otherwise they configure
	// themselves.
	InvitedOnly bool
	Namespace   string
	// OpenRead allows reading projects, requests, results, collectors and logs
	// without a token. Writing always needs one.
	OpenRead bool
	// OfflineAfter is the silence after which a collector counts as offline; 0: 30 s.
	OfflineAfter time.Duration
	// AnnounceAfter is the age at which a run is announced to its job's workflow, unless it
	// has ended; 0: 1 s.
	AnnounceAfter time.Duration
	// HeartbeatEvery is the interval of collectors' heartbeats; 0: 5 s.
	HeartbeatEvery time.Duration
	// MaxBody, MaxSuite and MaxBlock bound the bodies of requests and configurations, of
	// suites, and of blocks, in bytes, unpacked; 0: 8 MB, 32 MB (that of a suite's
	// archive) and 16 MB. Bodies of other operations are bounded by 64 kB.
	MaxBody, MaxSuite, MaxBlock int64
	// MaxBuild bounds the archive of a build in bytes; 0: [DefaultMaxBuild].
	MaxBuild int64
	// Computing is the number of concurrent comparisons and histories; 0: one for each processor, but at most 16, and on a
	// single processor a second one while the first takes long.
	Computing int
	// Computes is told when comparisons or histories begin, and when the last of them has ended; it must return
	// immediately. nil: nobody is told.
	Computes func(bool)
	// MaxCompared bounds the values that one comparison reads; 0: [DefaultMaxCompared].
	MaxCompared int64
	// Rates bound how often one client may call; the zero value sets no bound.
	Rates Rates
	// AllowedHosts are the names and addresses that clients may use for the API, besides
	// localhost, loopback addresses and the addresses at which connections come in.
	AllowedHosts []string
	// TrustedProxies are trusted to name the address of a client.
	TrustedProxies []netip.Prefix
	// StallBound is the time after which a client that takes nothing of an answer is
	// dropped; 0: 30 s.
	StallBound time.Duration
	// TemporalReady returns an error unless Temporal answers; nil: it is not checked.
	TemporalReady func(ctx context.Context) error
	// DiskShort returns an error while the file system that the service needs has less than its reserve; nil: it is not watched.
	DiskShort func() error
	// Metrics serves /metrics; nil: there is none.
	Metrics http.Handler
	// Scope counts requests and their latency by route; nil: no metrics.
	Scope tally.Scope
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Store == nil, c.Starter == nil, c.Dispatcher == nil, c.Inspector == nil, c.Now == nil, c.Log == nil, c.Random == nil:
		return c, errors.New("building the API: Store, Starter, Dispatcher, Inspector, Now, Log and Random must be set")
	case c.HeartbeatEvery < 0, c.OfflineAfter < 0, c.AnnounceAfter < 0, c.MaxBody < 0, c.MaxSuite < 0, c.MaxBlock < 0, c.MaxBuild < 0, c.MaxCompared < 0, c.StallBound < 0, c.Computing < 0:
		return c, errors.New("building the API: durations and bounds must not be negative")
	}
	if err := c.Rates.Validate(); err != nil {
		return c, fmt.Errorf("building the API: %w", err)
	}
	orDefault(&c.OfflineAfter, 30*time.Second)
	orDefault(&c.HeartbeatEvery, 5*time.Second)
	orDefault(&c.AnnounceAfter, announceAfter)
	orDefault(&c.MaxBody, 8<<20)
	orDefault(&c.MaxSuite, suite.MaxBundle)
	orDefault(&c.MaxBlock, 16<<20)
	orDefault(&c.MaxBuild, DefaultMaxBuild)
	orDefault(&c.MaxCompared, DefaultMaxCompared)
	orDefault(&c.StallBound, defaultStall)
	if c.Scope == nil {
		c.Scope = tally.NoopScope
	}
	if c.Computes == nil {
		c.Computes = func(bool) {}
	}
	return c, nil
}

func orDefault[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}

// base is shared by all handlers: settings, lookups, tokens and answers.
type base struct {
	Settings
	lookup
	huma       huma.API
	mux        *http.ServeMux
	suites     *suitecache.Cache
	tokens     *tokenCache
	limits     *limits
	audit      AuditRecord
	guard      *webguard.Guard
	dispatcher Dispatcher
	work       WorkRecord
	pages      *pages.Pages
	computing  *computing
	// misdeclared has the operations that were declared wrongly; nil: none.
	misdeclared error
	// afterwards tracks work that continues after an answer; waits are functions that wait for more
	// such work.
	afterwards sync.WaitGroup
	waits      []func()
}

// keep returns a cache whose work [Handler.Wait] waits for.
func keep[K comparable, V any](s *base, read func(ctx context.Context, key K) (V, error), much func(V) bool) *lately.Cache[K, V] {
	c := lately.New(s.Now, read, much)
	s.waits = append(s.waits, c.Wait)
	return c
}

// New returns the API. It creates the project of ad-hoc commands unless that exists.
func New(ctx context.Context, c Config) (*Handler, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	guard, err := webguard.New(c.AllowedHosts...)
	if err != nil {
		return nil, fmt.Errorf("building the API: %w", err)
	}
	s := &base{
		Settings: c.Settings, guard: guard, lookup: lookup{onceAPage{c.Store}}, mux: http.NewServeMux(), suites: suitecache.New(c.Store), tokens: newTokenCache(c.Store, c.Now), audit: c.Store,
		limits:     newLimits(c.Rates, c.Now),
		dispatcher: c.Dispatcher, work: c.Store,
	}
	places, spare := computingPlaces()
	if c.Computing > 0 {
		places, spare = c.Computing, 0
	}
	s.computing = newComputing(places, spare, computingLine,
		func(reason string) {
			s.Scope.Tagged(map[string]string{"reason": reason}).Counter("computations_refused").Inc(1)
		},
		func(waited time.Duration) { s.Scope.Timer("computations_wait").Record(waited) }, c.Computes)
	projects := &projectHandlers{base: s, record: c.Store, watcher: c.Starter, workflows: c.Starter}
	if err := projects.ensureAdHoc(ctx); err != nil {
		return nil, err
	}
	s.huma = humago.New(s.mux, s.humaConfig())
	s.huma.UseMiddleware(s.authorize)
	s.registerInfo(c.Store)
	admission := &admissionHandlers{base: s, record: c.Store}
	enrolment := &enrolmentHandlers{base: s, record: c.Store}
	announcer := newAnnouncer(s, c.Store, c.Starter)
	requests := &requestHandlers{
		base: s, queueAccess: queueAccess{names: s.lookup, queues: c.Store}, record: c.Store, workflows: c.Starter, inspector: c.Inspector, admission: admission,
	}
	templates := newDefinitionHandlers(s, c.Store)
	for _, group := range []interface{ register() }{
		projects,
		&suiteHandlers{base: s, record: c.Store},
		requests,
		&graphHandlers{base: s, record: c.Store},
		templates,
		&graphRunHandlers{base: s, record: c.Store, workflows: c.Starter, requests: requests, definitions: templates},
		admission,
		&queueHandlers{base: s, record: c.Store},
		newShareHandlers(s, c.Store),
		newWaitHandlers(s, c.Store),
		&tokenHandlers{base: s, record: c.Store},
		&operatorHandlers{base: s, queueAccess: queueAccess{names: s.lookup, queues: c.Store}, record: c.Store, workflows: c.Starter},
		&jobHandlers{base: s, record: c.Store, inspector: c.Inspector},
		&explainHandlers{base: s, record: c.Store, inspector: c.Inspector, admission: admission},
		&resultHandlers{base: s, record: c.Store, profiles: c.Store, memory: semaphore.NewWeighted(maxComparing)},
		&historyHandlers{base: s, record: c.Store, shifts: results.NewShifts()},
		&collectorHandlers{base: s, record: c.Store, enrolment: enrolment, announcer: announcer},
		enrolment,
		&runHandlers{base: s, record: c.Store, workflows: c.Starter, announcer: announcer},
		&profileHandlers{base: s, record: c.Store},
		&codeProfileHandlers{base: s, record: c.Store, files: c.Blobs},
		&runFileHandlers{base: s, record: c.Store, files: c.Blobs},
		&buildHandlers{base: s, record: c.Store},
		&retentionHandlers{base: s, record: c.Store, workflows: c.Starter},
		&packedHandlers{base: s, record: c.Store},
		newRevisionHandlers(s, c.Store),
		&overviewHandlers{base: s, record: c.Store, projects: projects},
	} {
		group.register()
	}
	if s.misdeclared != nil {
		return nil, fmt.Errorf("building the API: %w", s.misdeclared)
	}
	if err := s.servePages(); err != nil {
		return nil, fmt.Errorf("building the API: %w", err)
	}
	s.mux.HandleFunc("GET /readyz", s.ready(c.Store.Ping))
	s.servePlain()
	return &Handler{Handler: s.observe(s.mux), base: s}, nil
}

// Handler serves the API.
type Handler struct {
	http.Handler
	base *base
}

// Wait waits for the work that continues after answers. Call it when no more requests are
// served.
func (h *Handler) Wait() {
	h.base.afterwards.Wait()
	for _, wait := range h.base.waits {
		wait()
	}
}

// strict refuses JSON that would lose or repeat fields.
var strict = huma.Format{
	Marshal: huma.DefaultJSONFormat.Marshal,
	Unmarshal: func(text []byte, to any) error {
		if err := strictjson.Check(text); err != nil {
			return err
		}
		return json.Unmarshal(text, to)
	},
}

func (s *base) humaConfig() huma.Config {
	registry := huma.NewMapRegistry("#/components/schemas/", schemaName)
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Benchloom", Version: s.Version,
				Description: "Continuous benchmarking. Errors are problems (RFC 9457) with a type that programs can decide on and a detail for people.",
			},
			Components: &huma.Components{
				Schemas: registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					tokenScheme: {Type: "http", Scheme: "bearer", Description: "A token, beginning with " + TokenPrefix + ". Its role is reader, writer, admin or collector."},
				},
			},
		},
		Formats:                      map[string]huma.Format{"application/json": strict, "json": strict},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{completeProblem},
	}
}

// schemaName keeps types of the same name apart: those of the packages stats, flame and profiler are prefixed.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[huma.ErrorModel]():
		return "Problem"
	case t == reflect.TypeFor[huma.ErrorDetail]():
		return "ProblemDetail"
	case path.Base(t.PkgPath()) == "stats":
		return "Stats" + name
	case path.Base(t.PkgPath()) == "flame":
		return "Flame" + name
	case path.Base(t.PkgPath()) == "profiler":
		return "Profiler" + name
	}
	return name
}

// servePlain adds the paths outside the OpenAPI document.
func (s *base) servePlain() {
	s.mux.HandleFunc("GET /openapi.json", s.limited(s.document("application/openapi+json", func() ([]byte, error) {
		return json.MarshalIndent(s.huma.OpenAPI(), "", "  ")
	})))
	s.mux.HandleFunc("GET /openapi.yaml", s.limited(s.document("application/openapi+yaml", s.huma.OpenAPI().YAML)))
	s.mux.HandleFunc("GET /healthz", static("text/plain; charset=utf-8", []byte("ok\n")))
	if s.Metrics != nil {
		s.mux.HandleFunc("GET /metrics", s.forReaders(s.Metrics))
	}
	s.mux.HandleFunc("/", s.limited(s.noRoute))
}

// document serves the OpenAPI document in one format. It writes the document on first
// request: that takes longer than everything else in New.
func (s *base) document(contentType string, write func() ([]byte, error)) http.HandlerFunc {
	written := sync.OnceValues(write)
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := written()
		if err != nil {
			s.Log.ErrorContext(r.Context(), "writing the OpenAPI document failed", "error", err, "request_id", requestID(r.Context()))
			writeProblem(w, internalProblem(r.Context()))
			return
		}
		static(contentType, text)(w, r)
	}
}

func static(contentType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body) // fails only if the client is gone
	}
}

// readyBound bounds the readiness checks of the database and Temporal.
const readyBound = 3 * time.Second

// ready reports whether the database and Temporal answer. It is not rate-limited, but one check
// answers all concurrent callers.
func (s *base) ready(ping func(context.Context) error) http.HandlerFunc {
	var checks singleflight.Group
	return func(w http.ResponseWriter, r *http.Request) {
		found, _, _ := checks.Do("", func() (any, error) {
			// The first client may leave while others wait for the same check.
			ctx, stop := context.WithTimeout(context.WithoutCancel(r.Context()), readyBound)
			defer stop()
			return s.notReady(ctx, ping), nil
		})
		if problem, _ := found.(*huma.ErrorModel); problem != nil {
			writeProblem(w, problem)
			return
		}
		if problem := s.shortOfDisk(r.Context()); problem != nil {
			w.Header().Set(diskspace.ShortHeader, "short")
			writeProblem(w, problem)
			return
		}
		static("text/plain; charset=utf-8", []byte("ready\n"))(w, r)
	}
}

// shortOfDisk returns a problem while the disk reserve is used; else nil.
func (s *base) shortOfDisk(ctx context.Context) *huma.ErrorModel {
	if s.DiskShort == nil {
		return nil
	}
	err := s.DiskShort()
	if err == nil {
		return nil
	}
	s.Log.WarnContext(ctx, "not ready: the disk is short", "error", err)
	return problemf(http.StatusServiceUnavailable, "not-ready", "the disk of the service is short: less than its reserve is free; free space there, as the API's log says")
}

// notReady returns what is not ready; nil if everything is.
func (s *base) notReady(ctx context.Context, ping func(context.Context) error) *huma.ErrorModel {
	if err := ping(ctx); err != nil {
		s.Log.WarnContext(ctx, "not ready: the database does not answer", "error", err)
		return problemf(http.StatusServiceUnavailable, "not-ready", "the database does not answer; is Postgres running, and DATABASE_URL right?")
	}
	if s.TemporalReady == nil {
		return nil
	}
	if err := s.TemporalReady(ctx); err != nil {
		s.Log.WarnContext(ctx, "not ready: Temporal does not answer", "error", err)
		return problemf(http.StatusServiceUnavailable, "not-ready", "Temporal does not answer; is it running, and TEMPORAL_ADDRESS right?")
	}
	return nil
}
