package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
	"github.com/benchloom/benchloom/internal/store"
)

// ProfileRecord keeps what was sampled during runs. Each method returns store.ErrNotFound for an unknown run.
type ProfileRecord interface {
	profileStore
	// ProfileProgress returns the number of the run's last upload, and whether nothing more will come.
	ProfileProgress(ctx context.Context, run bench.RunID) (part int, over bool, err error)
	Profile(ctx context.Context, run bench.RunID) (store.Profile, error)
	// ProfileBatches reads what came after a part; last is the last part of what it has read.
	ProfileBatches(ctx context.Context, p store.Profile, after int, wanted func(profiler.Series) bool) (batches []profiler.Batch, last int, more bool, err error)
}

// Bounds on concurrent calls, see [base.inSlot].
const (
	// sampleSlots: each holds a body of up to MaxBody and a connection of the database, of which results need most.
	sampleSlots = 4
	// followSlots: each holds a page of samples for a moment, and a connection of a client until the run ends.
	followSlots = 64
)

type profileHandlers struct {
	*base
	record ProfileRecord
}

func (s *profileHandlers) register() {
	handle(s.base, operation{id: "upload-profile", method: http.MethodPost, path: "/runs/{run}/profile/batches", need: toCollect, owns: []ownership{ownRun}, tag: "collectors", maxBody: s.MaxBody, gzip: true, slots: sampleSlots, ownChecks: true,
		summary:     "Upload what was sampled during a run",
		description: "All of an upload is stored or nothing of it; a refusal lists everything that is wrong, up to a hundred faults. Batches that were stored before, by their attempt, series and sequence number, change nothing. Accepted until 30 s after the end of the run."}, s.upload)
	handle(s.base, operation{id: "get-profile", method: http.MethodGet, path: "/runs/{run}/profile/series", need: toRead, tag: "jobs",
		summary: "List what was sampled during a run", description: "By attempt, with what the machine does not have. A collector that dies leaves a partial attempt."}, s.series)
	handle(s.base, operation{id: "get-profile-metrics", method: http.MethodGet, path: "/runs/{run}/profile/metrics", need: toRead, tag: "jobs", slots: followSlots,
		summary:     "Read what was sampled during a run",
		description: "With follow, as server-sent events: each event samples is a page, whose ID is its next; the event end is the last one, after the end of the run and everything that was sampled. One who comes back with Last-Event-ID misses nothing.",
		answers:     []documented{{status: http.StatusOK, json: reflect.TypeFor[apiclient.ProfileMetrics](), media: []string{eventStream}}}}, s.metrics)
}

type uploadProfile struct {
	Run  string `path:"run" doc:"ID of the run."`
	Body profiler.Upload
}

func (s *profileHandlers) upload(ctx context.Context, in *uploadProfile) (*body[apiclient.ProfileReceipt], error) {
	id, err := bench.ParseRunID(in.Run)
	if err != nil {
		return nil, err
	}
	receipt, err := storeProfile(ctx, s.record, id, in.Body)
	if err != nil {
		return nil, err
	}
	return answer(apiclient.ProfileReceipt{Stored: receipt.Stored, Repeated: receipt.Repeated}, nil)
}

// profileStore is the part of a [ProfileRecord] that keeps uploads.
type profileStore interface {
	StoreProfile(ctx context.Context, run bench.RunID, u profiler.Upload) (store.ProfileReceipt, error)
}

// storeProfile checks and stores an upload, or nothing of it.
func storeProfile(ctx context.Context, record profileStore, run bench.RunID, u profiler.Upload) (receipt store.ProfileReceipt, err error) {
	if faults := u.Check(); len(faults) > 0 {
		return receipt, faulty(faults)
	}
	receipt, err = record.StoreProfile(ctx, run, u)
	if tooMuch, ok := errors.AsType[*store.ProfileError](err); ok {
		return receipt, faulty(tooMuch.Faults)
	}
	if err != nil {
		return receipt, unknownRun(run, err)
	}
	return receipt, nil
}

// faulty returns the problem of an upload of which nothing is stored.
func faulty(faults []profiler.Fault) error {
	p := invalid("nothing of the upload is stored: %s; correct what is named below", count(len(faults), "fault"))
	for _, f := range faults {
		p.Errors = append(p.Errors, &huma.ErrorDetail{Location: "body." + f.Where, Message: f.What})
	}
	return p
}

func (s *profileHandlers) series(ctx context.Context, in *runPath) (*body[apiclient.Profile], error) {
	id, err := bench.ParseRunID(in.Run)
	if err != nil {
		return nil, err
	}
	p, err := s.record.Profile(ctx, id)
	if err != nil {
		return nil, unknownRun(id, err)
	}
	out := apiclient.Profile{Run: id, State: profileState(p), Over: p.Over, Attempts: make([]apiclient.ProfileAttempt, len(p.Attempts))}
	for i, a := range p.Attempts {
		shown := apiclient.ProfileAttempt{
			Attempt: a.Name, Host: a.Host, BeganAt: a.BeganAt, DroppedTotal: a.Dropped, Absent: notNil(a.Absent), Series: make([]apiclient.ProfileSeries, len(a.Series)),
			Partial: a.Summary == nil && (p.Over || i < len(p.Attempts)-1),
		}
		for k, series := range a.Series {
			shown.Series[k] = apiclient.ProfileSeries{Series: series.Series, Unit: series.Unit(), Values: series.Values}
		}
		out.Attempts[i] = shown
	}
	return answer(out, nil)
}

func profileState(p store.Profile) apiclient.ProfileState {
	switch {
	case len(p.Attempts) == 0:
		return apiclient.ProfileNone
	case p.Over:
		return apiclient.ProfileFinished
	}
	return apiclient.ProfileRecording
}

type getProfileMetrics struct {
	Run    string   `path:"run" doc:"ID of the run."`
	Follow bool     `query:"follow" doc:"Go on until the run has ended and everything has arrived."`
	Series []string `query:"series,explode" maxItems:"600" doc:"Only these: scope, name and device, such as job/cpu_used or machine/cpu_util/cpu3, or a name of any scope, such as cpu_used."`
	From   int      `query:"from" minimum:"0" doc:"Only what came after this; the value of next from the page before."`
	Last   string   `header:"Last-Event-ID" maxLength:"20" doc:"ID of the last event that was received; it precedes from."`
}

// wanted reports whether a series is asked for.
func (in *getProfileMetrics) wanted(s profiler.Series) bool {
	return len(in.Series) == 0 || slices.Contains(in.Series, s.Name) || slices.Contains(in.Series, s.String())
}

func (s *profileHandlers) metrics(ctx context.Context, in *getProfileMetrics) (*huma.StreamResponse, error) {
	id, err := bench.ParseRunID(in.Run)
	if err != nil {
		return nil, err
	}
	// The first page decides whether there is an answer at all.
	page, err := s.page(ctx, id, in)
	if err != nil {
		return nil, unknownRun(id, err)
	}
	if in.Follow {
		return &huma.StreamResponse{Body: func(ctx huma.Context) { s.follow(ctx, id, in, page) }}, nil
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", "application/json")
		_ = s.huma.Marshal(ctx.BodyWriter(), "application/json", page) // fails only if the client is gone
	}}, nil
}

// page reads what came after in.From.
func (s *profileHandlers) page(ctx context.Context, id bench.RunID, in *getProfileMetrics) (apiclient.ProfileMetrics, error) {
	if last, ok := eventID(in.Last); ok {
		in.From, in.Last = last, ""
	}
	p, err := s.record.Profile(ctx, id)
	if err != nil {
		return apiclient.ProfileMetrics{}, err
	}
	batches, last, more, err := s.record.ProfileBatches(ctx, p, in.From, in.wanted)
	if err != nil {
		return apiclient.ProfileMetrics{}, err
	}
	page := apiclient.ProfileMetrics{State: profileState(p), Batches: notNil(batches), Next: last, More: more}
	for _, a := range p.Attempts {
		if a.Summary != nil && a.Part > in.From && a.Part <= last { // its last part brought the summary
			page.Summaries = append(page.Summaries, apiclient.ProfileSummary{Attempt: a.Name, Summary: *a.Summary})
		}
	}
	return page, nil
}
