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

// BuiltSource provides the archives of builds. A [Cache] calls it through [Built], holding the exclusive lock of the build's
// entry, so that a machine fetches each build once; it may fetch different builds at the same time. It must not be nil.
type BuiltSource interface {
	// FetchBuild writes the archive of a build, in the format of [Pack], to w and returns its expected SHA-256 in
	// hexadecimal. Errors that the caller must act on are an [*Error].
	FetchBuild(ctx context.Context, key string, w io.Writer, progress ProgressFunc) (sum string, err error)
}

// Built provides artifacts that were built from a revision of a repository.
//
// Its only parameter, "key", identifies the build by its inputs; callers determine it first. A resolved request has no tag
// and no target: equal keys mean the same artifact, whatever its name. The identity is "build:" and the key.
type Built struct {
	// Source provides archives.
	Source BuiltSource
	// MaxUnpacked limits the content, in bytes; 0 means 16 GiB.
	MaxUnpacked int64
	// MaxEntries limits its files, links and directories; 0 means 200,000.
	MaxEntries int
}

// Name returns "build".
func (*Built) Name() string { return "build" }

// Resolve makes the key the tag.
func (*Built) Resolve(req Request) (Request, error) {
	key := req.Parameters["key"]
	if !sha256Pattern.MatchString(key) {
		return Request{}, req.invalid("the build's key is missing", "request it, so that it is built first")
	}
	return Request{Provider: req.Provider, Tag: key[:12], Parameters: map[string]string{"key": key}}, nil
}

// Fetch fetches the archive, verifies its hash and unpacks it.
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
		dir: content, left: orDefault(b.MaxUnpacked, defaultMaxUnpacked), room: orDefault(b.MaxEntries, defaultMaxEntries),
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
			Remedy: "request it again, so that it is rebuilt"}
	}
	return nil
}

func explainBuilt(req Request, err error) error {
	if errors.Is(err, errTooLarge) {
		return &Error{Kind: Invalid, Artifact: req.String(), Reason: "the build is larger than allowed", Err: err, Remedy: "name a smaller output in the suite"}
	}
	_, bad := errors.AsType[*archiveError](err)
	if bad || errors.Is(err, errNothingUnpacked) {
		return &Error{Kind: Corrupt, Artifact: req.String(), Reason: "not a usable archive", Err: err, Remedy: "request it again, so that it is rebuilt"}
	}
	return fmt.Errorf("unpacking %s: %w", req, err)
}
