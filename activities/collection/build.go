package collection

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/artifact"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
)

// BuildsAPI is the part of the HTTP API for making and fetching builds. It is
// called under no lock, and calls that fail with a transient error are retried.
// It must not be nil.
type BuildsAPI interface {
	UploadBuildChunk(ctx context.Context, run bench.RunID, number int, data []byte) error
	FinishBuild(ctx context.Context, run bench.RunID, finish apiclient.BuildFinish) (apiclient.Build, error)
	Build(ctx context.Context, key bench.BuildKey) (apiclient.Build, error)
	BuildChunk(ctx context.Context, key bench.BuildKey, number int) ([]byte, error)
}

// archiveName is the file into which a build is packed before its upload. No suite
// has this name, and a collector builds one thing at a time.
const archiveName = ".build.tar.gz"

// build runs a build job and stores its archive.
func (c *Collector) build(ctx context.Context, plan apiclient.RunPlan, s *sink, out *runLog) (err error) {
	stored, err := c.stored(ctx, plan.Build.Spec.Key)
	if err != nil {
		return infrastructure(fmt.Errorf("asking whether %s is built: %w", plan.Build.Spec, err))
	}
	if stored {
		fmt.Fprintln(out, "== it is built already")
		return nil
	}
	if err := os.MkdirAll(c.CacheDir, 0o755); err != nil {
		return infrastructure(fmt.Errorf("packing the build: %w", err))
	}
	archive := filepath.Join(c.CacheDir, archiveName)
	defer func() {
		if removed := os.Remove(archive); removed != nil && !errors.Is(removed, os.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}()
	machine := c.Machine
	machine.Log = out
	machine.Points = func(point string) { c.phase(ctx, plan.Run.ID, point) }
	job := jobrun.BuildJob{Spec: plan.Build.Spec, Revisions: c.Revisions, Archive: archive, MaxBytes: plan.Build.MaxBytes}
	machine.Sampled = s.used.add
	if s.profile != nil {
		machine.Watcher = s.profile
	}
	building := func(ctx context.Context) error {
		return c.onFullDisk(ctx, out, func() (bool, error) { return false, jobrun.Build(ctx, machine, job) })
	}
	if err := c.within(ctx, plan, s, building); err != nil {
		return err
	}
	c.phase(ctx, plan.Run.ID, string(jobrun.Uploading))
	began := time.Now()
	defer func() { s.profile.timed(jobrun.Uploading, began) }()
	return c.uploadBuild(ctx, plan, archive)
}

func (c *Collector) stored(ctx context.Context, key bench.BuildKey) (bool, error) {
	err := apiclient.Retry(ctx, c.Upload, func(ctx context.Context) error {
		_, err := c.API.Build(ctx, key)
		return err
	})
	if errors.Is(err, apiclient.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// uploadBuild sends the archive in chunks and resumes where an outage
// interrupted it.
func (c *Collector) uploadBuild(ctx context.Context, plan apiclient.RunPlan, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return infrastructure(fmt.Errorf("reading the build: %w", err))
	}
	defer file.Close()
	hash := sha256.New()
	var size int64
	for number := 0; ; number++ {
		// Each chunk has a separate buffer: an attempt that was answered early
		// may still be sending the previous one.
		piece := make([]byte, plan.Build.ChunkBytes)
		n, err := io.ReadFull(file, piece)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return infrastructure(fmt.Errorf("reading the build: %w", err))
		}
		hash.Write(piece[:n])
		size += int64(n)
		err = apiclient.Retry(ctx, c.Upload, func(ctx context.Context) error {
			return c.API.UploadBuildChunk(ctx, plan.Run.ID, number, piece[:n])
		})
		if err != nil {
			return undelivered(err)
		}
	}
	finish := apiclient.BuildFinish{Size: size, SHA256: hex.EncodeToString(hash.Sum(nil))}
	err = apiclient.Retry(ctx, c.Upload, func(ctx context.Context) error {
		_, err := c.API.FinishBuild(ctx, plan.Run.ID, finish)
		return err
	})
	return undelivered(err)
}

// undelivered classifies a failed upload. An upload for a job that has ended is
// not retried.
func undelivered(err error) error {
	if err == nil || errors.Is(err, apiclient.ErrJobClosed) {
		return err
	}
	return infrastructure(fmt.Errorf("uploading the build: %w", err))
}

// artifactRequest returns the request that acquires one of the job's artifacts.
func artifactRequest(plan apiclient.RunPlan, tag, provider string, parameters map[string]string) (artifact.Request, error) {
	r := artifact.Request{Provider: provider, Tag: tag, Target: string(plan.Job.Target), Parameters: parameters}
	if provider != bench.BuildProvider {
		return r, nil
	}
	built := plan.BuiltAs
	if tag == plan.Job.Versus {
		built = plan.VersusBuiltAs
	}
	if built == "" {
		return r, permanent(fmt.Errorf("%s for %s was not built as the suite and the project say now; they were changed after it was requested: request it again", r.Tag, r.Target))
	}
	r.Parameters = map[string]string{"key": string(built)}
	return r, nil
}

// StoredBuilds fetches builds from the API; it is the source of an
// [artifact.Built].
type StoredBuilds struct {
	API BuildsAPI
	// Retry limits how long an unreachable API is retried for each chunk.
	Retry apiclient.RetryPolicy
}

// FetchBuild downloads an archive in chunks.
func (b StoredBuilds) FetchBuild(ctx context.Context, key string, w io.Writer, progress artifact.ProgressFunc) (string, error) {
	var info apiclient.Build
	err := apiclient.Retry(ctx, b.Retry, func(ctx context.Context) (err error) {
		info, err = b.API.Build(ctx, bench.BuildKey(key))
		return err
	})
	if err != nil {
		return "", unfetched(key, err)
	}
	var done int64
	for number := range info.Chunks {
		var data []byte
		err := apiclient.Retry(ctx, b.Retry, func(ctx context.Context) (err error) {
			data, err = b.API.BuildChunk(ctx, bench.BuildKey(key), number)
			return err
		})
		if err != nil {
			return "", unfetched(key, err)
		}
		if _, err := w.Write(data); err != nil {
			return "", err
		}
		done += int64(len(data))
		progress(artifact.Progress{Step: fmt.Sprintf("downloading build %.12s", key), Done: done, Total: info.Size})
	}
	return info.SHA256, nil
}

func unfetched(key string, err error) error {
	e := &artifact.Error{Artifact: fmt.Sprintf("build %.12s", key), Err: err}
	switch {
	case errors.Is(err, apiclient.ErrNotFound):
		e.Kind, e.Reason = artifact.NotFound, "it was announced but is not there any more"
	default:
		e.Kind, e.Reason, e.Remedy = artifact.Unavailable, "the download failed", "check the API and the network of this machine"
	}
	return e
}
