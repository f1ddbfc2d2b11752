package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/pprof/profile"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/blobs"
	"github.com/benchloom/benchloom/internal/flame"
	"github.com/benchloom/benchloom/internal/store"
)

// CodeProfileRecord keeps profiles of programs, without their files.
type CodeProfileRecord interface {
	// CheckProfileRun and StoreCodeProfile return store.ErrNoProfileJob for a run of another kind, and store.ErrRunClosed after its end.
	CheckProfileRun(ctx context.Context, run bench.RunID) error
	StoreCodeProfile(ctx context.Context, run bench.RunID, p bench.CodeProfile) (bench.CodeProfile, error)
	// CodeProfile returns store.ErrNotFound for an unknown one.
	CodeProfile(ctx context.Context, id bench.ProfileID) (bench.CodeProfile, error)
	CodeProfiles(ctx context.Context, filter store.CodeProfileFilter) ([]bench.CodeProfile, error)
}

const (
	// codeProfileSlots: each holds a profile, packed and unpacked, or sends a file of up to MaxRawProfile.
	codeProfileSlots = 4
	// maxFunctions bounds the functions of one answer; more are for the file.
	maxFunctions = 10_000
	// drawnFunctions are listed beside a flame graph.
	drawnFunctions = 100
)

type codeProfileHandlers struct {
	*base
	record CodeProfileRecord
	// files keeps what profilers write; nil: nothing does.
	files blobs.Store
}

func (s *codeProfileHandlers) register() {
	handle(s.base, operation{id: "upload-raw-profile", method: http.MethodPut, path: "/runs/{run}/code-profile/raw", need: toCollect, owns: []ownership{ownRun}, tag: "collectors",
		maxBody: apiclient.MaxRawProfile, slots: codeProfileSlots, before: s.receiveRaw,
		summary:     "Upload what the profiler of a run has written",
		description: fmt.Sprintf("The body has the type application/octet-stream and at most %d MiB; several files are one tar.gz. It is stored as it is, until the profile names it; one that no profile names is removed. A repeated upload changes nothing.", apiclient.MaxRawProfile>>20)}, s.uploadRaw)
	handle(s.base, operation{id: "upload-code-profile", method: http.MethodPut, path: "/runs/{run}/code-profile", need: toCollect, owns: []ownership{ownRun}, tag: "collectors",
		maxBody: apiclient.MaxCodeProfile, slots: codeProfileSlots,
		summary: "Upload the profile of a run", description: "In the form of google/pprof. A job has one profile: what comes after the first answers with that."}, s.upload)
	handle(s.base, operation{id: "list-code-profiles", method: http.MethodGet, path: "/projects/{project}/profiles", need: toRead, tag: "profiles",
		summary: "List profiles of programs, newest first"}, s.list)
	handle(s.base, operation{id: "get-code-profile", method: http.MethodGet, path: "/profiles/{id}", need: toRead, tag: "profiles",
		summary: "Show a profile of a program"}, s.get)
	handle(s.base, operation{id: "get-code-profile-file", method: http.MethodGet, path: "/profiles/{id}/file", need: toRead, tag: "profiles", slots: codeProfileSlots, computes: true,
		summary: "Download a profile of a program", description: "As what its profiler has written (raw), for 'go tool pprof' (pprof), as folded stacks (folded), for speedscope or the Firefox Profiler (speedscope), or as a page with a flame graph that needs nothing else (html).",
		answers: []documented{{status: http.StatusOK, media: []string{octetsType}}}}, s.file)
	handle(s.base, operation{id: "list-code-profile-functions", method: http.MethodGet, path: "/profiles/{id}/functions", need: toRead, tag: "profiles", slots: codeProfileSlots, computes: true,
		summary: "List the functions of a profile", description: fmt.Sprintf("Those with the largest own value first, at most %d.", maxFunctions)}, s.functions)
	handle(s.base, operation{id: "diff-code-profiles", method: http.MethodGet, path: "/profiles/diff", need: toRead, tag: "profiles", slots: codeProfileSlots, computes: true,
		summary: "List the functions that differ most between two profiles", description: fmt.Sprintf("By their own shares of all samples, at most %d. A profile explains a measurement and is none: whether something became slower is for a comparison to tell.", maxFunctions),
		answers: []documented{{status: http.StatusOK, json: reflect.TypeFor[flame.Difference](), media: []string{"text/html"}}}}, s.difference)
	handle(s.base, operation{id: "get-code-profile-flames", method: http.MethodGet, path: "/profiles/{id}/flames", need: toRead, tag: "profiles", slots: codeProfileSlots, computes: true,
		summary: "Lay out a profile as a flame graph", description: fmt.Sprintf("Boxes by their places, and the first %d functions.", drawnFunctions)}, s.flames)
	handle(s.base, operation{id: "diff-code-profile-flames", method: http.MethodGet, path: "/profiles/diff/flames", need: toRead, tag: "profiles", slots: codeProfileSlots, computes: true,
		summary: "Lay out how two profiles differ as a flame graph", description: fmt.Sprintf("Boxes as wide as in the profile after, with the values of both, and the first %d functions.", drawnFunctions)}, s.differenceFlames)
}

// profileFile words what the blob store says of a file of a profile.
var profileFile = fileWords{tooLarge: "profile less, or sample less often", gone: "the file of the profile is not stored, or not any more; profile again"}

// filesFailed returns the problem of a call of the blob store.
func (s *codeProfileHandlers) filesFailed(ctx context.Context, err error) error {
	return s.blobsFailed(ctx, err, profileFile)
}

func refusedProfile(run bench.RunID, err error) error {
	if errors.Is(err, store.ErrNoProfileJob) {
		return problemf(http.StatusConflict, "no-profile-job", "run %s makes no profile: %s; only those of profile jobs deliver one", run, err)
	}
	return unknownRun(run, err)
}

// receiveRaw stores the body as it arrives: it is never in memory as a whole.
func (s *codeProfileHandlers) receiveRaw(ctx huma.Context, next func(huma.Context)) {
	stored, err := s.storeRaw(ctx)
	if err != nil {
		s.refuse(ctx, s.problemOf(ctx.Context(), err))
		return
	}
	next(huma.WithValue(ctx, storedFileKey{}, stored))
}

func (s *codeProfileHandlers) storeRaw(ctx huma.Context) (apiclient.StoredFile, error) {
	run, err := bench.ParseRunID(ctx.Param("run"))
	if err != nil {
		return apiclient.StoredFile{}, err
	}
	if err := s.record.CheckProfileRun(ctx.Context(), run); err != nil {
		return apiclient.StoredFile{}, refusedProfile(run, err)
	}
	return s.storeBody(ctx, s.files, apiclient.MaxRawProfile, profileFile)
}

type uploadRaw struct {
	Run string `path:"run" doc:"ID of the run."`
}

func (s *codeProfileHandlers) uploadRaw(ctx context.Context, _ *uploadRaw) (*body[apiclient.StoredFile], error) {
	stored, ok := ctx.Value(storedFileKey{}).(apiclient.StoredFile)
	if !ok {
		return nil, errors.New("a raw profile was not received before its answer")
	}
	return answer(stored, nil)
}

type uploadCodeProfile struct {
	Run     string `path:"run" doc:"ID of the run."`
	Raw     string `query:"raw" required:"true" doc:"Digest of the raw file, which is stored."`
	Format  string `query:"format" required:"true" enum:"pprof,perf-script,callgrind,folded,self-profile,dhat,firefox" doc:"Format of the raw file."`
	RawBody []byte `contentType:"application/octet-stream"`
}

func (s *codeProfileHandlers) upload(ctx context.Context, in *uploadCodeProfile) (*body[apiclient.CodeProfile], error) {
	run, err := bench.ParseRunID(in.Run)
	if err != nil {
		return nil, err
	}
	raw, err := blobs.ParseDigest(in.Raw)
	if err != nil {
		return nil, invalid("raw: %s", err)
	}
	if err := s.record.CheckProfileRun(ctx, run); err != nil {
		return nil, refusedProfile(run, err)
	}
	if s.files == nil {
		return nil, noFiles()
	}
	p, err := flame.Parse(flame.Pprof, bytes.NewReader(in.RawBody))
	if err != nil {
		return nil, problemf(http.StatusUnprocessableEntity, "no-profile", "the body is no profile: %s", err)
	}
	made := bench.CodeProfile{Format: in.Format, RawDigest: in.Raw, SampleTypes: totals(p)}
	if made.RawSize, err = s.sizeOf(ctx, raw); err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	if err := p.Write(&packed); err != nil {
		return nil, fmt.Errorf("writing the profile of run %s: %w", run, err)
	}
	digest, size, err := s.files.Put(ctx, &packed, apiclient.MaxCodeProfile)
	if err != nil {
		return nil, s.filesFailed(ctx, err)
	}
	made.Digest, made.Size = string(digest), size
	stored, err := s.record.StoreCodeProfile(ctx, run, made)
	if err != nil {
		return nil, refusedProfile(run, err)
	}
	return answer(codeProfileOf(stored), nil)
}

// sizeOf reads a stored file, which proves it whole and undamaged.
func (s *codeProfileHandlers) sizeOf(ctx context.Context, d blobs.Digest) (int64, error) {
	file, err := s.files.Get(ctx, d)
	if errors.Is(err, blobs.ErrNotFound) {
		return 0, invalid("the raw file %.12s is not stored; upload it first", string(d))
	}
	if err != nil {
		return 0, s.filesFailed(ctx, err)
	}
	defer file.Close()
	n, err := io.Copy(io.Discard, file)
	if err != nil {
		return 0, s.filesFailed(ctx, err)
	}
	return n, nil
}

// totals adds up the samples of each type.
func totals(p *profile.Profile) []bench.SampleTotal {
	out := make([]bench.SampleTotal, len(p.SampleType))
	for i, t := range p.SampleType {
		out[i] = bench.SampleTotal{Type: t.Type, Unit: t.Unit}
	}
	for _, sample := range p.Sample {
		for i, v := range sample.Value {
			out[i].Total += v
		}
	}
	return out
}

func codeProfileOf(p bench.CodeProfile) apiclient.CodeProfile {
	return apiclient.CodeProfile{
		ID: p.ID, Project: p.Project, Request: p.Request, Job: p.Job, Run: p.Run, Tag: p.Tag, TestCase: p.TestCase, Profiler: p.Profiler,
		Collector: p.Collector, HardwareID: p.HardwareID, Format: p.Format, RawDigest: p.RawDigest, RawSize: p.RawSize, Digest: p.Digest, Size: p.Size,
		SampleTypes: notNil(p.SampleTypes), CreatedAt: p.CreatedAt,
	}
}

type listCodeProfiles struct {
	Project   string `path:"project"`
	Request   string `query:"request" doc:"Only those of this request."`
	Job       string `query:"job" doc:"Only that of this job."`
	Run       string `query:"run" doc:"Only that of this run."`
	Tag       string `query:"tag" doc:"Only those of this artifact."`
	Benchmark string `query:"benchmark" doc:"Only those of this benchmark."`
	Limit     int    `query:"limit" minimum:"1" maximum:"500" default:"100"`
}

func (s *codeProfileHandlers) list(ctx context.Context, in *listCodeProfiles) (*body[apiclient.CodeProfileList], error) {
	if _, err := s.project(ctx, in.Project, http.StatusNotFound); err != nil {
		return nil, err
	}
	found, err := s.record.CodeProfiles(ctx, store.CodeProfileFilter{
		Project: in.Project, Request: bench.RequestID(in.Request), Job: bench.JobKey(in.Job), Run: bench.RunID(in.Run), Tag: in.Tag, Benchmark: in.Benchmark, Limit: in.Limit,
	})
	out := apiclient.CodeProfileList{Profiles: make([]apiclient.CodeProfile, len(found))}
	for i, p := range found {
		out.Profiles[i] = codeProfileOf(p)
	}
	return answer(out, err)
}

type codeProfilePath struct {
	ID string `path:"id" doc:"ID of the profile: p and ten letters or digits."`
}

func (s *codeProfileHandlers) get(ctx context.Context, in *codeProfilePath) (*body[apiclient.CodeProfile], error) {
	p, err := s.profile(ctx, in.ID)
	return answer(codeProfileOf(p), err)
}

func (s *codeProfileHandlers) profile(ctx context.Context, text string) (bench.CodeProfile, error) {
	id, err := bench.ParseProfileID(text)
	if err != nil {
		return bench.CodeProfile{}, err
	}
	p, err := s.record.CodeProfile(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		err = problemf(http.StatusNotFound, "unknown-profile", "there is no profile %s, or not any more; 'benchloom profile list PROJECT' shows which there are", id)
	}
	return p, err
}

// read reads a profile with its samples, which have sampleType unless that is empty.
func (s *codeProfileHandlers) read(ctx context.Context, id, sampleType string) (bench.CodeProfile, *profile.Profile, error) {
	about, err := s.profile(ctx, id)
	if err != nil {
		return about, nil, err
	}
	file, err := s.open(ctx, about.Digest)
	if err != nil {
		return about, nil, err
	}
	defer file.Close()
	p, err := flame.Parse(flame.Pprof, file)
	if err != nil {
		return about, nil, s.filesFailed(ctx, fmt.Errorf("reading profile %s: %w", id, err))
	}
	if types := flame.Types(p); sampleType != "" && !slices.Contains(types, sampleType) {
		return about, nil, invalid("profile %s has no samples of type %.40q; use %s", id, sampleType, strings.Join(types, ", "))
	}
	return about, p, nil
}

func (s *codeProfileHandlers) open(ctx context.Context, digest string) (io.ReadCloser, error) {
	return s.openFile(ctx, s.files, digest, profileFile)
}

type codeProfileFile struct {
	ID   string `path:"id" doc:"ID of the profile: p and ten letters or digits."`
	Form string `query:"form" enum:"raw,pprof,folded,speedscope,html" default:"pprof"`
	Type string `query:"type" maxLength:"64" doc:"Sample type of folded, speedscope and html; default: that of the profile."`
}

func (s *codeProfileHandlers) file(ctx context.Context, in *codeProfileFile) (*huma.StreamResponse, error) {
	form := apiclient.ProfileForm(in.Form)
	if form == apiclient.FormRaw || form == apiclient.FormPprof {
		about, err := s.profile(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		digest, name := about.Digest, in.ID+".pb.gz"
		if form == apiclient.FormRaw {
			digest, name = about.RawDigest, in.ID+"."+about.Format
		}
		file, err := s.open(ctx, digest)
		if err != nil {
			return nil, err
		}
		return s.attached(octetsType, name, file), nil
	}
	about, p, err := s.read(ctx, in.ID, in.Type)
	if err != nil {
		return nil, err
	}
	title := titleOf(about)
	var out bytes.Buffer
	switch form {
	case apiclient.FormFolded:
		err = flame.WriteFolded(&out, p, in.Type)
		return s.attached(plainText, in.ID+".folded", io.NopCloser(&out)), err
	case apiclient.FormSpeedscope:
		err = flame.WriteSpeedscope(&out, p, title)
		return s.attached("application/json", in.ID+".speedscope.json", io.NopCloser(&out)), err
	}
	tree, err := flame.NewTree(p, in.Type)
	if err != nil {
		return nil, err
	}
	return s.drawn(in.ID, title, fmt.Sprintf("%s: %s.", tree.Type, flame.Amount(tree.Root.Total, tree.Unit)), tree, p)
}

// drawn answers with a page that stands alone. It is downloaded, never shown as a page of
// the service.
func (s *codeProfileHandlers) drawn(name, title, about string, tree flame.Tree, p *profile.Profile) (*huma.StreamResponse, error) {
	table, err := flame.Top(p, tree.Type)
	if err != nil {
		return nil, err
	}
	page := flame.Page(flame.Drawing{ID: "flames", Title: title, Graph: tree.Lay("", flame.DrawnBoxes)}, about, table)
	return s.attached("text/html; charset=utf-8", name+".html", io.NopCloser(strings.NewReader(page))), nil
}

func titleOf(p bench.CodeProfile) string {
	return fmt.Sprintf("%s %s: %s by %s", p.Project, p.Tag, p.TestCase, p.Profiler)
}

type codeProfileFunctions struct {
	ID   string `path:"id" doc:"ID of the profile: p and ten letters or digits."`
	Type string `query:"type" maxLength:"64" doc:"Sample type; default: that of the profile."`
}

func (s *codeProfileHandlers) functions(ctx context.Context, in *codeProfileFunctions) (*body[flame.Table], error) {
	_, p, err := s.read(ctx, in.ID, in.Type)
	if err != nil {
		return nil, err
	}
	table, err := flame.Top(p, in.Type)
	table.Functions = notNil(table.Functions[:min(len(table.Functions), maxFunctions)])
	return answer(table, err)
}

type diffCodeProfiles struct {
	A    string `query:"a" required:"true" doc:"ID of the profile before."`
	B    string `query:"b" required:"true" doc:"ID of the profile after."`
	Type string `query:"type" maxLength:"64" doc:"Sample type; default: that of the profiles."`
	Form string `query:"form" enum:"json,html" default:"json" doc:"html: a page with a differential flame graph that needs nothing else."`
}

func (s *codeProfileHandlers) difference(ctx context.Context, in *diffCodeProfiles) (*huma.StreamResponse, error) {
	beforeOf, before, err := s.read(ctx, in.A, in.Type)
	if err != nil {
		return nil, err
	}
	afterOf, after, err := s.read(ctx, in.B, in.Type)
	if err != nil {
		return nil, err
	}
	d, err := flame.Diff(before, after, in.Type)
	if err != nil {
		return nil, invalid("the profiles %s and %s cannot be compared: %s", in.A, in.B, err)
	}
	if in.Form == "html" {
		tree, err := flame.NewDifference(before, after, in.Type)
		if err != nil {
			return nil, err
		}
		about := fmt.Sprintf("%s: %s before, %s after. What takes a larger share of all than before is red, what takes a smaller one is blue.",
			tree.Type, flame.Amount(tree.Root.BeforeTotal, tree.Unit), flame.Amount(tree.Root.Total, tree.Unit))
		return s.drawn(in.A+"-"+in.B, titleOf(afterOf)+", compared with "+titleOf(beforeOf), about, tree, after)
	}
	d.Functions = notNil(d.Functions[:min(len(d.Functions), maxFunctions)])
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", "application/json")
		_ = s.huma.Marshal(ctx.BodyWriter(), "application/json", d) // fails only if the client is gone
	}}, nil
}

// FlameQuery chooses what a flame graph shows. It is exported for those who read its parameters by reflection.
type FlameQuery struct {
	Type   string `query:"type" maxLength:"64" doc:"Sample type; default: that of the profile."`
	At     string `query:"at" maxLength:"16" doc:"ID of the frame that takes the whole width, below its callers; default: all."`
	Search string `query:"search" maxLength:"200" doc:"A part of names of functions: the answer tells the value of the samples with one, regardless of case."`
	Boxes  int    `query:"boxes" minimum:"1" maximum:"20000" default:"2500" doc:"Draw the narrowest boxes together until so many are left, or a little more than the deepest stack has frames."`
}

type codeProfileFlames struct {
	ID string `path:"id" doc:"ID of the profile: p and ten letters or digits."`
	FlameQuery
}

func (s *codeProfileHandlers) flames(ctx context.Context, in *codeProfileFlames) (*body[apiclient.DrawnProfile], error) {
	_, p, err := s.read(ctx, in.ID, in.Type)
	if err != nil {
		return nil, err
	}
	tree, err := flame.NewTree(p, in.Type)
	if err != nil {
		return nil, err
	}
	table, err := flame.Top(p, in.Type)
	out := in.graph(tree, flame.Types(p))
	out.More = max(0, len(table.Functions)-drawnFunctions)
	table.Functions = notNil(table.Functions[:len(table.Functions)-out.More])
	out.Functions = &table
	return answer(out, err)
}

func (q FlameQuery) graph(tree flame.Tree, types []string) apiclient.DrawnProfile {
	return apiclient.DrawnProfile{Graph: tree.Lay(q.At, q.Boxes), Types: types, Matched: tree.Matched(strings.TrimSpace(q.Search))}
}

type diffCodeProfileFlames struct {
	A string `query:"a" required:"true" doc:"ID of the profile before."`
	B string `query:"b" required:"true" doc:"ID of the profile after."`
	FlameQuery
}

func (s *codeProfileHandlers) differenceFlames(ctx context.Context, in *diffCodeProfileFlames) (*body[apiclient.DrawnProfile], error) {
	_, before, err := s.read(ctx, in.A, in.Type)
	if err != nil {
		return nil, err
	}
	_, after, err := s.read(ctx, in.B, in.Type)
	if err != nil {
		return nil, err
	}
	d, err := flame.Diff(before, after, in.Type)
	if err != nil {
		return nil, invalid("the profiles %s and %s cannot be compared: %s", in.A, in.B, err)
	}
	tree, err := flame.NewDifference(before, after, in.Type)
	if err != nil {
		return nil, err
	}
	types := slices.DeleteFunc(flame.Types(after), func(t string) bool { return !slices.Contains(flame.Types(before), t) })
	out := in.graph(tree, notNil(types))
	out.More = max(0, len(d.Functions)-drawnFunctions)
	d.Functions = notNil(d.Functions[:len(d.Functions)-out.More])
	out.Changes = &d
	return answer(out, nil)
}
