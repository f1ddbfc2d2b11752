package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// BuiltSource hands out the archives of builds. A [Cache] calls it through [Built], with the exclusive lock of the
// build's entry held, so that a machine fetches each build once; different builds at the same time. It must not be nil.
type BuiltSource interface {
	// FetchBuild writes the archive of a build, as [Pack] makes it, to w and
	// returns its SHA-256 in hexadecimal as it should be. Whatever the caller
	// has to decide on is an [*Error].
	FetchBuild(ctx context.Context, key string, w io.Writer, progress ProgressFunc) (sum string, err error)
}

// Built provides artifacts that were built from a revision of a repository.
//
// Its one parameter, "key", names the build by what it was made of; whoever asks
// finds it out first. Tag and target are left out of a resolved request: equal
// keys are one artifact, whatever it is called. The identity is "build:" and the
// key.
type Built struct {
	// Source provides archives.
	Source BuiltSource
	// MaxUnpacked bounds the content, in bytes; 0: 16 GiB.
	MaxUnpacked int64
}

// Name returns "build".
func (*Built) Name() string { return "build" }

// Resolve makes the key the tag.
func (*Built) Resolve(req Request) (Request, error) {
	key := req.Parameters["key"]
	if !sha256Pattern.MatchString(key) {
		return Request{}, req.invalid("it is not known which build this is", "request it, so that it is built first")
	}
	return Request{Provider: req.Provider, Tag: key[:12], Parameters: map[string]string{"key": key}}, nil
}

// Fetch gets the archive, compares its hash and unpacks it.
func (b *Built) Fetch(ctx context.Context, req Request, dir string, progress ProgressFunc) (string, error) {
	scratch, err := os.MkdirTemp(dir, ".fetch-")
	if err != nil {
		return "", err
	}
	defer func() { _ = removeTree(scratch) }() // below the entry's own temporary directory, which goes too
	archive := filepath.Join(scratch, "archive")
	if err := b.download(ctx, req, archive, progress); err != nil {
		return "", err
	}
	content := filepath.Join(scratch, "content")
	if err := os.Mkdir(content, 0o755); err != nil {
		return "", err
	}
	up := &unpacker{
		dir: content, left: orDefault(b.MaxUnpacked, defaultMaxUnpacked),
		progress: func(done int64) { progress(Progress{Step: "unpacking " + req.String(), Done: done}) },
	}
	if err := up.unpack(ctx, archive); err != nil {
		return "", explainBuilt(req, err)
	}
	if err := promote(content, dir); err != nil {
		return "", err
	}
	return "build:" + req.Parameters["key"], nil
}

func (b *Built) download(ctx context.Context, req Request, file string, progress ProgressFunc) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	hash := sha256.New()
	want, err := b.Source.FetchBuild(ctx, req.Parameters["key"], io.MultiWriter(out, hash), progress)
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != want {
		return &Error{Kind: Corrupt, Artifact: req.String(), Reason: fmt.Sprintf("the archive's SHA-256 is %s, not %s", got, want),
			Remedy: "request it again, so that it is built anew"}
	}
	return nil
}

func explainBuilt(req Request, err error) error {
	if errors.Is(err, errTooLarge) {
		return &Error{Kind: Invalid, Artifact: req.String(), Reason: "what was built is larger than allowed", Err: err, Remedy: "name a smaller output in the suite"}
	}
	_, bad := errors.AsType[*archiveError](err)
	if bad || errors.Is(err, errNothingUnpacked) {
		return &Error{Kind: Corrupt, Artifact: req.String(), Reason: "not a usable archive", Err: err, Remedy: "request it again, so that it is built anew"}
	}
	return fmt.Errorf("unpacking %s: %w", req, err)
}
