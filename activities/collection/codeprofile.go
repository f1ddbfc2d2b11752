package collection

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/flame"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/suite"
)

// profilePatience bounds how long the machine waits for an API that does not take a profile: the API may lack room for
// files for a long time.
const profilePatience = 10 * time.Minute

// CodeProfilesAPI is the part of the HTTP API that stores profiles of programs. It is called under no lock,
// and calls that fail with a transient error are retried, from the first byte. It must not be nil.
type CodeProfilesAPI interface {
	StoreRawProfile(ctx context.Context, run bench.RunID, size int64, body io.ReadSeeker) (apiclient.StoredFile, error)
	StoreCodeProfile(ctx context.Context, run bench.RunID, p apiclient.NewCodeProfile, body []byte) (apiclient.CodeProfile, error)
}

// profiling describes how the job's only test case runs under its profiler.
func (s *sink) profiling(profiler string, of *suite.Suite) *jobrun.Profile {
	return &jobrun.Profile{
		Profiler: profiler, Suite: of, Limit: apiclient.MaxRawProfile,
		Keep: func(ctx context.Context, files jobrun.ProfileFiles) error {
			s.clock.stop()
			defer s.clock.start()
			began := time.Now()
			defer func() { s.profile.timed(jobrun.Uploading, began) }()
			return s.collector.keepProfile(ctx, s.run, files)
		},
	}
}

// keepProfile stores a profile: first the raw file, which the common form refers to. Neither is spooled, since a profile
// can be made again: if it cannot be delivered, the run ends as lost.
func (c *Collector) keepProfile(ctx context.Context, run bench.RunID, files jobrun.ProfileFiles) (err error) {
	common, err := commonForm(files)
	if err != nil {
		return err
	}
	raw, size, remove, err := c.rawFile(files.Files)
	if err != nil {
		return infrastructure(fmt.Errorf("packing the profile: %w", err))
	}
	defer func() { err = errors.Join(err, remove()) }()
	c.phase(ctx, run, string(jobrun.Uploading))
	patience := c.Upload
	if patience.For == 0 || patience.For > profilePatience {
		patience.For = profilePatience
	}
	var stored apiclient.StoredFile
	err = apiclient.Retry(ctx, patience, func(ctx context.Context) (err error) {
		stored, err = c.API.StoreRawProfile(ctx, run, size, raw)
		return err
	})
	if err == nil {
		err = apiclient.Retry(ctx, patience, func(ctx context.Context) error {
			_, err := c.API.StoreCodeProfile(ctx, run, apiclient.NewCodeProfile{Raw: stored.Digest, Format: flame.Format(files.Format)}, common)
			return err
		})
	}
	var refused *apiclient.Problem
	switch {
	case err == nil, errors.Is(err, apiclient.ErrJobClosed):
		return err
	case errors.As(err, &refused) && (refused.Status == http.StatusRequestEntityTooLarge || refused.Status == http.StatusUnprocessableEntity):
		return &jobrun.Failure{Kind: bench.FailPermanent, Message: "the API refuses the profile: " + err.Error()}
	}
	return infrastructure(fmt.Errorf("uploading the profile: %w", err))
}

// commonForm converts files to google/pprof's form, compressed. Files that are not a profile fail the test case.
func commonForm(files jobrun.ProfileFiles) ([]byte, error) {
	readers := make([]io.Reader, 0, len(files.Files))
	for _, f := range files.Files {
		readers = append(readers, f)
	}
	p, err := flame.ParseFiles(flame.Format(files.Format), readers)
	if err == nil && files.Type != "" {
		err = flame.ShowFirst(p, files.Type)
	}
	if errors.Is(err, flame.ErrNotAProfile) {
		return nil, &jobrun.Failure{Kind: bench.FailPermanent, Message: err.Error()}
	}
	if err != nil {
		return nil, infrastructure(err)
	}
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		return nil, infrastructure(fmt.Errorf("writing the profile: %w", err))
	}
	if out.Len() > apiclient.MaxCodeProfile {
		return nil, &jobrun.Failure{Kind: bench.FailPermanent, Message: fmt.Sprintf("the profile has %d bytes, and at most %d are kept; profile less of it, or with a lower frequency", out.Len(), apiclient.MaxCodeProfile)}
	}
	return out.Bytes(), nil
}

// rawFile returns the profiler's output as one file, packing several files.
func (c *Collector) rawFile(files []*os.File) (_ io.ReadSeeker, size int64, remove func() error, err error) {
	if len(files) == 1 {
		info, err := files[0].Stat()
		if err != nil {
			return nil, 0, nil, err
		}
		return files[0], info.Size(), func() error { return nil }, nil
	}
	if err := os.MkdirAll(c.CacheDir, 0o755); err != nil {
		return nil, 0, nil, err
	}
	packed, err := os.CreateTemp(c.CacheDir, ".profile-*.tar.gz")
	if err != nil {
		return nil, 0, nil, err
	}
	remove = func() error { return errors.Join(packed.Close(), os.Remove(packed.Name())) }
	if err := archive(packed, files); err != nil {
		return nil, 0, nil, errors.Join(err, remove())
	}
	if size, err = packed.Seek(0, io.SeekCurrent); err != nil {
		return nil, 0, nil, errors.Join(err, remove())
	}
	return packed, size, remove, nil
}

func archive(to io.Writer, files []*os.File) error {
	compressed := gzip.NewWriter(to)
	in := tar.NewWriter(compressed)
	for _, f := range files {
		size, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := in.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: filepath.Base(f.Name()), Size: size, Mode: 0o644, Format: tar.FormatPAX}); err != nil {
			return err
		}
		if _, err := io.CopyN(in, f, size); err != nil {
			return err
		}
	}
	return errors.Join(in.Close(), compressed.Close())
}
