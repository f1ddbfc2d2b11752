package jobrun

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/benchloom/benchloom/internal/artifact"
	"github.com/benchloom/benchloom/internal/bench"
)

// LocalBuilds builds artifacts of the provider build on this machine, without a
// service. It wraps a cache whose [artifact.Built] fetches from it, so that
// nothing is built twice.
type LocalBuilds struct {
	Revisions Revisions
	// Cache and Machine are set before the first use. Machine must not measure
	// while an artifact is being acquired.
	Cache   Artifacts
	Machine Machine

	mu    sync.Mutex
	specs map[string]bench.BuildSpec // by key
}

// localProject takes the place of the project in the keys of local builds.
const localProject = "local"

// Acquire resolves a revision and acquires its build; it passes requests for
// other providers on to the cache.
func (b *LocalBuilds) Acquire(ctx context.Context, request artifact.Request, progress artifact.ProgressFunc) (*artifact.Handle, error) {
	if request.Provider != bench.BuildProvider {
		return b.Cache.Acquire(ctx, request, progress)
	}
	target := bench.Target(request.Target)
	recipe, err := bench.ParseBuildRecipe(request.Parameters, request.Tag, target)
	if err != nil {
		return nil, err
	}
	if progress != nil {
		progress(artifact.Progress{Step: "looking for revision " + request.Tag})
	}
	found, err := b.Revisions.Resolve(ctx, recipe.Repository, request.Tag)
	if err != nil {
		return nil, err
	}
	spec, err := recipe.Spec(localProject, request.Tag, target, found.Commit, found.Tree)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	if b.specs == nil {
		b.specs = make(map[string]bench.BuildSpec)
	}
	b.specs[string(spec.Key)] = spec
	b.mu.Unlock()
	request.Parameters = map[string]string{"key": string(spec.Key)}
	return b.Cache.Acquire(ctx, request, progress)
}

// FetchBuild builds a revision that Acquire has resolved.
func (b *LocalBuilds) FetchBuild(ctx context.Context, key string, w io.Writer, progress artifact.ProgressFunc) (sum string, err error) {
	b.mu.Lock()
	spec, ok := b.specs[key]
	b.mu.Unlock()
	if !ok {
		return "", fmt.Errorf("build %.12s was not requested", key)
	}
	scratch, err := os.MkdirTemp("", "benchloom-build-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	progress(artifact.Progress{Step: "building " + spec.String()})
	archive := filepath.Join(scratch, "archive")
	err = Build(ctx, b.Machine, BuildJob{Spec: spec, Revisions: b.Revisions, Archive: archive})
	if failure, ok := errors.AsType[*Failure](err); ok {
		return "", &artifact.Error{Kind: artifact.Invalid, Artifact: spec.String(), Reason: strings.TrimPrefix(failure.Message, "build "+spec.Tag+": ")}
	}
	if err != nil {
		return "", err
	}
	file, err := os.Open(archive)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, hash), file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
