package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/benchloom/benchloom/internal/blobs"
	"github.com/benchloom/benchloom/internal/store"
)

// blobFlags name the store of files that are too large for the record.
type blobFlags struct{ at, most string }

func (f *blobFlags) addBlobs(flags *pflag.FlagSet) {
	flags.StringVar(&f.at, "blobs", "", "where files of profiles are kept: a directory that all APIs share, or https://HOST/BUCKET/PREFIX on an S3 server, with the credentials of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if needed, AWS_SESSION_TOKEN and AWS_REGION (default: nowhere)")
	flags.StringVar(&f.most, "blobs-most", "20GiB", "bound of all files of profiles together")
}

const (
	// blobsTidied is the interval at which files that no profile names are removed.
	blobsTidied = time.Hour
	// blobsKept is the time for which such a file stays: its profile may still be on the way, and uploads are repeated for minutes.
	blobsKept = 24 * time.Hour
)

// tidyBlobs removes files that no profile names, until the context ends: those of refused uploads, and of profiles whose request was removed.
// Each API does so: only APIs have the store.
func tidyBlobs(ctx context.Context, files blobs.Store, records *store.Store, log *slog.Logger) {
	every := time.NewTicker(blobsTidied)
	defer every.Stop()
	for {
		removed, err := blobs.Collect(ctx, files, time.Now().Add(-blobsKept), records.BlobsInUse)
		if removed.Files > 0 {
			log.InfoContext(ctx, "removed files that no profile names", "files", removed.Files, "bytes", removed.Bytes)
		}
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "not all files that no profile names were removed", "error", err)
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}

// check returns an error if the flags are wrong. It opens nothing.
func (f *blobFlags) check() error {
	most, err := size("--blobs-most", f.most)
	if err != nil {
		return err
	}
	if most < 1 {
		return fmt.Errorf("--blobs-most %q: name the room for files, such as 20GiB", f.most)
	}
	if f.isAddress() {
		if _, err := blobs.ParseS3(f.at); err != nil {
			return fmt.Errorf("--blobs: %w", err)
		}
	}
	return nil
}

func (f *blobFlags) isAddress() bool { return strings.Contains(f.at, "://") }

// open opens the store; nil if none. The flags have been checked.
func (f *blobFlags) open(ctx context.Context) (blobs.Store, error) {
	if f.at == "" {
		return nil, nil
	}
	most, err := size("--blobs-most", f.most)
	if err != nil {
		return nil, err
	}
	if !f.isAddress() {
		store, err := blobs.OpenDirectory(ctx, f.at, most)
		if err != nil {
			return nil, fmt.Errorf("--blobs %s: %w", f.at, err)
		}
		return store, nil
	}
	config, err := blobs.ParseS3(f.at)
	if err != nil {
		return nil, err
	}
	config.Most, config.Region = most, os.Getenv("AWS_REGION")
	config.Credentials = blobs.Credentials{
		AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
	}
	store, err := blobs.OpenS3(ctx, config, nil)
	if err != nil {
		return nil, fmt.Errorf("--blobs %s: %w", f.at, err)
	}
	return store, nil
}
