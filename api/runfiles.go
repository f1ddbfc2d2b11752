package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/blobs"
	"github.com/benchloom/benchloom/internal/store"
)

// RunFileRecord keeps what is known of the files of runs, without their contents.
type RunFileRecord interface {
	// CheckFilesRun and StoreRunFile return store.ErrNotFound, store.ErrRunClosed or
	// store.ErrNoFilesJob for a run that may not keep files.
	CheckFilesRun(ctx context.Context, run bench.RunID) error
	StoreRunFile(ctx context.Context, run bench.RunID, f bench.RunFile) error
	RunFiles(ctx context.Context, run bench.RunID) ([]bench.RunFile, error)
	// RunFile returns store.ErrNotFound for an unknown file.
	RunFile(ctx context.Context, run bench.RunID, path string) (bench.RunFile, error)
	// Run returns store.ErrNotFound for an unknown run.
	Run(ctx context.Context, run bench.RunID) (bench.Run, error)
}

// runFileSlots: each receives or sends a file of up to bench.MaxRunFile.
const runFileSlots = 4

type runFileHandlers struct {
	*base
	record RunFileRecord
	// files keeps the contents; nil: nothing does.
	files blobs.Store
}

func (s *runFileHandlers) register() {
	handle(s.base, operation{id: "upload-run-file", method: http.MethodPut, path: "/runs/{run}/files", need: toCollect, owns: []ownership{ownRun}, tag: "collectors",
		maxBody: bench.MaxRunFile, slots: runFileSlots, before: s.receive,
		summary:     "Upload a file that a run keeps",
		description: fmt.Sprintf("One that the uploads of a graph's command name. The body has the type application/octet-stream and at most %d MiB; a run keeps at most %d files. A repeated upload changes nothing.", bench.MaxRunFile>>20, bench.MaxRunFiles)}, s.upload)
	handle(s.base, operation{id: "list-run-files", method: http.MethodGet, path: "/runs/{run}/files", need: toRead, tag: "jobs",
		summary: "List the files that a run has kept"}, s.list)
	handle(s.base, operation{id: "get-run-file", method: http.MethodGet, path: "/runs/{run}/files/content", need: toRead, tag: "jobs", slots: runFileSlots,
		summary: "Download a file that a run has kept", answers: []documented{{status: http.StatusOK, media: []string{octetsType}}}}, s.content)
}

// receive stores the body as it arrives: it is never in memory as a whole.
func (s *runFileHandlers) receive(ctx huma.Context, next func(huma.Context)) {
	stored, err := s.stored(ctx)
	if err != nil {
		s.refuse(ctx, s.problemOf(ctx.Context(), err))
		return
	}
	next(huma.WithValue(ctx, storedFileKey{}, stored))
}

func (s *runFileHandlers) stored(ctx huma.Context) (apiclient.StoredFile, error) {
	run, err := bench.ParseRunID(ctx.Param("run"))
	if err != nil {
		return apiclient.StoredFile{}, err
	}
	if err := bench.CheckRunFilePath(ctx.Query("path")); err != nil {
		return apiclient.StoredFile{}, err
	}
	if err := s.record.CheckFilesRun(ctx.Context(), run); err != nil {
		return apiclient.StoredFile{}, refusedFile(run, err)
	}
	return s.storeBody(ctx, s.files, bench.MaxRunFile, keptFile)
}

// keptFile words what the blob store says of a file that a run keeps.
var keptFile = fileWords{tooLarge: "keep a smaller file", gone: "the file is not stored, or not any more; run the job again"}

func refusedFile(run bench.RunID, err error) error {
	if errors.Is(err, store.ErrNoFilesJob) {
		return problemf(http.StatusConflict, "no-files", "run %s keeps no files: %s; a command of a graph names them as its uploads", run, err)
	}
	return unknownRun(run, err)
}

type uploadRunFile struct {
	Run  string `path:"run" doc:"ID of the run."`
	Path string `query:"path" required:"true" maxLength:"500" doc:"Path within the job's directory, with slashes."`
}

func (s *runFileHandlers) upload(ctx context.Context, in *uploadRunFile) (*body[apiclient.RunFile], error) {
	stored, ok := ctx.Value(storedFileKey{}).(apiclient.StoredFile)
	if !ok {
		return nil, errors.New("a file of a run was not received before its answer")
	}
	run, err := bench.ParseRunID(in.Run)
	if err != nil {
		return nil, err
	}
	if err := s.record.StoreRunFile(ctx, run, bench.RunFile{Path: in.Path, Digest: stored.Digest, Size: stored.Size}); err != nil {
		return nil, refusedFile(run, err)
	}
	f, err := s.record.RunFile(ctx, run, in.Path)
	return answer(runFileOf(f), err)
}

func runFileOf(f bench.RunFile) apiclient.RunFile {
	return apiclient.RunFile{Path: f.Path, Digest: f.Digest, Size: f.Size, CreatedAt: f.CreatedAt}
}

type runFilesPath struct {
	Run string `path:"run" doc:"ID of the run."`
}

func (s *runFileHandlers) list(ctx context.Context, in *runFilesPath) (*body[apiclient.RunFileList], error) {
	run, err := s.known(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	files, err := s.record.RunFiles(ctx, run)
	out := apiclient.RunFileList{Files: make([]apiclient.RunFile, len(files))}
	for i, f := range files {
		out.Files[i] = runFileOf(f)
	}
	return answer(out, err)
}

// known reads the ID of a run, which must exist.
func (s *runFileHandlers) known(ctx context.Context, text string) (bench.RunID, error) {
	run, err := bench.ParseRunID(text)
	if err != nil {
		return "", err
	}
	_, err = s.record.Run(ctx, run)
	return run, unknownRun(run, err)
}

type runFileContent struct {
	Run  string `path:"run" doc:"ID of the run."`
	Path string `query:"path" required:"true" maxLength:"500" doc:"Path of the file, as it is listed."`
}

func (s *runFileHandlers) content(ctx context.Context, in *runFileContent) (*huma.StreamResponse, error) {
	run, err := s.known(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	f, err := s.record.RunFile(ctx, run, in.Path)
	if errors.Is(err, store.ErrNotFound) {
		return nil, problemf(http.StatusNotFound, "unknown-file", "run %s has no file %.200q; 'benchloom run files %s' lists those that it has", run, in.Path, run)
	}
	if err != nil {
		return nil, err
	}
	file, err := s.openFile(ctx, s.files, f.Digest, keptFile)
	if err != nil {
		return nil, err
	}
	return s.attached(octetsType, path.Base(f.Path), file), nil
}
