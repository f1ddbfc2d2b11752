package collection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
)

// RunFilesAPI is the part of the HTTP API that keeps files of runs. It is called under no lock, and calls that fail with a
// transient error are retried, from the first byte. It must not be nil.
type RunFilesAPI interface {
	StoreRunFile(ctx context.Context, run bench.RunID, path string, size int64, body io.ReadSeeker) (apiclient.RunFile, error)
}

// keepFiles uploads the files of the run. They are not spooled, since they can be made again: if they cannot be
// delivered, the run ends as lost.
func (s *sink) keepFiles(ctx context.Context, files []jobrun.KeptFile) error {
	s.clock.stop()
	defer s.clock.start()
	began := time.Now()
	defer func() { s.profile.timed(jobrun.Uploading, began) }()
	c := s.collector
	c.phase(ctx, s.run, string(jobrun.Uploading))
	patience := c.Upload
	if patience.For == 0 || patience.For > profilePatience {
		patience.For = profilePatience
	}
	for _, f := range files {
		err := apiclient.Retry(ctx, patience, func(ctx context.Context) error {
			_, err := c.API.StoreRunFile(ctx, s.run, f.Path, f.Size, f.File)
			return err
		})
		var refused *apiclient.Problem
		switch {
		case err == nil:
		case errors.Is(err, apiclient.ErrJobClosed):
			return err
		case errors.As(err, &refused) && (refused.Status == http.StatusRequestEntityTooLarge || refused.Status == http.StatusUnprocessableEntity):
			return &jobrun.Failure{Kind: bench.FailPermanent, Message: fmt.Sprintf("the API refuses the upload of %s: %s", f.Path, err)}
		default:
			return infrastructure(fmt.Errorf("uploading %s: %w", f.Path, err))
		}
	}
	return nil
}
