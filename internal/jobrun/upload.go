package jobrun

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/benchloom/benchloom/internal/bench"
)

// keepFiles delivers the files that a script uploads, after its programs have succeeded.
func (r *runner) keepFiles(ctx context.Context, u *unit, what string) (failure *Failure, err error) {
	if r.script == nil || len(r.script.Uploads) == 0 || r.job.Command.Keep == nil {
		return nil, nil
	}
	permanent := func(format string, args ...any) *Failure {
		return &Failure{Kind: bench.FailPermanent, Message: what + ": " + fmt.Sprintf(format, args...)}
	}
	work := u.places.paths.Work
	names, failure := matching(work, r.script.Uploads, permanent)
	if failure != nil {
		return failure, nil
	}
	var files []KeptFile
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.File.Close())
		}
	}()
	for _, name := range names {
		f, err := u.places.openFile(filepath.Join(work, filepath.FromSlash(name)))
		if err != nil {
			return permanent("reading %s for its upload: %v", name, err), nil
		}
		info, err := f.Stat()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", what, err), f.Close())
		}
		files = append(files, KeptFile{Path: name, Size: info.Size(), File: f})
		if info.Size() > bench.MaxRunFile {
			return permanent("%s has %s, and at most %s are uploaded", name, humanize.IBytes(uint64(info.Size())), humanize.IBytes(bench.MaxRunFile)), nil
		}
	}
	err = r.job.Command.Keep(ctx, files)
	if refused, is := errors.AsType[*Failure](err); is {
		refused.Message = what + ": " + refused.Message
		return refused, nil
	}
	return nil, err
}

// matching returns the files below a directory that match patterns, with slashes, in order. A
// pattern without a match fails.
func matching(dir string, patterns []string, failed func(string, ...any) *Failure) ([]string, *Failure) {
	var names []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(escaped(dir), filepath.FromSlash(pattern)))
		if err != nil {
			return nil, failed("upload %s: %v", pattern, err)
		}
		if len(found) == 0 {
			return nil, failed("it succeeded, but nothing matches the upload %s", pattern)
		}
		for _, path := range found {
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return nil, failed("upload %s: %v", pattern, err)
			}
			name = filepath.ToSlash(name)
			if err := bench.CheckRunFilePath(name); err != nil {
				return nil, failed("upload %s: %v", pattern, err)
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > bench.MaxRunFiles {
		return nil, failed("its uploads match %d files; at most %d are kept", len(names), bench.MaxRunFiles)
	}
	return names, nil
}

// escaped returns a pattern that matches only the given path.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
