package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// BuildRecord stores builds.
type BuildRecord interface {
	// Build and BuildChunk return store.ErrNotFound for builds that are no longer stored.
	Build(ctx context.Context, key bench.BuildKey) (store.Build, error)
	BuildChunk(ctx context.Context, key bench.BuildKey, number int) ([]byte, error)
	// PutBuildChunk and FinishBuild return store.ErrNoBuild for a run of another kind,
	// and FinishBuild store.ErrIncomplete when a piece is missing.
	PutBuildChunk(ctx context.Context, run bench.RunID, number int, data []byte) error
	FinishBuild(ctx context.Context, run bench.RunID, size int64, sha256 string) (store.Build, error)
}

type buildHandlers struct {
	*base
	record BuildRecord
}

// DefaultMaxBuild bounds the archive of a build: 1 GiB.
const DefaultMaxBuild = 1 << 30

func (s *buildHandlers) register() {
	handle(s.base, operation{id: "get-build", method: http.MethodGet, path: "/builds/{key}", need: toFetch, tag: "builds",
		summary: "Show a stored build"}, s.getBuild)
	handle(s.base, operation{id: "get-build-chunk", method: http.MethodGet, path: "/builds/{key}/chunks/{number}", need: toCollect, owns: []ownership{ownBuild}, tag: "builds", slots: chunkSlots,
		summary: "Download a piece of a build", description: "All pieces together are a tar.gz with the SHA-256 of the build.",
		answers: []documented{{status: http.StatusOK, media: []string{octetsType}}}}, s.getBuildChunk)
	handle(s.base, operation{id: "upload-build-chunk", method: http.MethodPut, path: "/runs/{run}/build/chunks/{number}", need: toCollect, owns: []ownership{ownRun}, tag: "collectors",
		status: http.StatusNoContent, maxBody: store.BuildChunkBytes + 1,
		summary: "Upload a piece of a run's build", description: "Pieces are numbered from 0; all but the last have 1 MiB. A repeated upload changes nothing."}, s.putBuildChunk)
	handle(s.base, operation{id: "finish-build", method: http.MethodPost, path: "/runs/{run}/build/finish", need: toCollect, owns: []ownership{ownRun}, tag: "collectors",
		summary: "Complete a build from its uploaded pieces", description: "They are checked against size and SHA-256."}, s.finishBuild)
}

const octetsType = "application/octet-stream"

type buildPath struct {
	Key string `path:"key" doc:"Key of the build: 64 hexadecimal digits."`
}

func unknownBuild(key string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return problemf(http.StatusNotFound, "unknown-build", "build %.12s is not stored, or not any more; request its artifact again, so that it is built", key)
	}
	return err
}

func (s *buildHandlers) getBuild(ctx context.Context, in *buildPath) (*body[apiclient.Build], error) {
	key, err := bench.ParseBuildKey(in.Key)
	if err != nil {
		return nil, err
	}
	b, err := s.record.Build(ctx, key)
	if err != nil {
		return nil, unknownBuild(in.Key, err)
	}
	return answer(buildOf(b), nil)
}

func buildOf(b store.Build) apiclient.Build {
	return apiclient.Build{
		Key: b.Key, Project: b.Project, Tree: b.Tree, Target: b.Target, Size: b.Size, SHA256: b.SHA256, Chunks: b.Chunks(),
		ChunkBytes: store.BuildChunkBytes, Run: b.RunID, CreatedAt: b.CreatedAt, LastUsed: b.LastUsed,
	}
}

type buildChunkPath struct {
	Key    string `path:"key" doc:"Key of the build: 64 hexadecimal digits."`
	Number int    `path:"number" minimum:"0" maximum:"1000000" doc:"Counts from 0."`
}

type octets struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (s *buildHandlers) getBuildChunk(ctx context.Context, in *buildChunkPath) (*octets, error) {
	key, err := bench.ParseBuildKey(in.Key)
	if err != nil {
		return nil, err
	}
	data, err := s.record.BuildChunk(ctx, key, in.Number)
	if err != nil {
		return nil, unknownBuild(in.Key, err)
	}
	return &octets{ContentType: octetsType, Body: data}, nil
}

type putBuildChunk struct {
	Run     string `path:"run" doc:"ID of the run."`
	Number  int    `path:"number" minimum:"0" maximum:"1000000" doc:"Counts from 0."`
	RawBody []byte `contentType:"application/octet-stream"`
}

func (s *buildHandlers) putBuildChunk(ctx context.Context, in *putBuildChunk) (*none, error) {
	id, err := bench.ParseRunID(in.Run)
	if err != nil {
		return nil, err
	}
	if int64(in.Number)*store.BuildChunkBytes+int64(len(in.RawBody)) > s.MaxBuild {
		return nil, buildTooLarge(id, s.MaxBuild)
	}
	if err := s.record.PutBuildChunk(ctx, id, in.Number, in.RawBody); err != nil {
		return nil, refusedBuild(id, err)
	}
	return nil, nil
}

func buildTooLarge(run bench.RunID, limit int64) error {
	return problemf(http.StatusRequestEntityTooLarge, "too-large", "the build of run %s is larger than the allowed %d bytes; name a smaller output, or start the API with a larger --max-build-size", run, limit)
}

func refusedBuild(run bench.RunID, err error) error {
	switch {
	case errors.Is(err, store.ErrNoBuild):
		return problemf(http.StatusConflict, "no-build", "run %s is not one of a build job; only these deliver builds", run)
	case errors.Is(err, store.ErrIncomplete):
		return problemf(http.StatusConflict, "incomplete", "%s; deliver all pieces as they are, then finish again", err)
	}
	return unknownRun(run, err)
}

type finishBuild struct {
	Run  string `path:"run" doc:"ID of the run."`
	Body apiclient.BuildFinish
}

func (s *buildHandlers) finishBuild(ctx context.Context, in *finishBuild) (*body[apiclient.Build], error) {
	id, err := bench.ParseRunID(in.Run)
	if err != nil {
		return nil, err
	}
	if in.Body.Size > s.MaxBuild {
		return nil, buildTooLarge(id, s.MaxBuild)
	}
	b, err := s.record.FinishBuild(ctx, id, in.Body.Size, in.Body.SHA256)
	if err != nil {
		return nil, refusedBuild(id, err)
	}
	return answer(buildOf(b), nil)
}

// addBuild adds the build of a run, or the key of its artifact's build.
func (s *runHandlers) addBuild(ctx context.Context, job bench.Job, config bench.ProjectConfig, plan *apiclient.RunPlan) error {
	if job.Build != nil {
		plan.Build = &apiclient.BuildOrder{Spec: *job.Build, MaxBytes: s.MaxBuild, ChunkBytes: store.BuildChunkBytes}
		return nil
	}
	if job.Command != nil || job.SuiteHash == "" {
		return nil
	}
	loaded, err := s.suites.Suite(ctx, job.SuiteHash)
	if err != nil {
		return err
	}
	source := loaded.Artifact()
	built := map[string]*bench.BuildKey{job.Tag: &plan.BuiltAs}
	if job.Versus != "" && !job.IsCanary() {
		built[job.Versus] = &plan.VersusBuiltAs
	}
	for tag, key := range built {
		provider, parameters := config.Artifacts.For(tag, source.Provider, source.Parameters)
		if provider != bench.BuildProvider {
			continue
		}
		recipe, err := bench.ParseBuildRecipe(parameters, tag, job.Target)
		if err != nil {
			return err
		}
		*key, err = s.record.BuildOf(ctx, job.Project, tag, job.Target, recipe.Hash(job.Target))
		if err != nil && !errors.Is(err, store.ErrNotFound) { // a missing build is the run's error to report
			return err
		}
	}
	return nil
}
