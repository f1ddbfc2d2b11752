package apiclient

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
)

// SendProfile uploads what the profiling agent beside a run has recorded. Uploading it again changes nothing.
func (c *Client) SendProfile(ctx context.Context, run bench.RunID, u profiler.Upload) error {
	var body bytes.Buffer
	// The CPU time of a collector is worth more than the last tenth of the bytes.
	zipped, err := gzip.NewWriterLevel(&body, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(zipped).Encode(u); err != nil {
		return fmt.Errorf("encoding the profile of run %s: %w", run, err)
	}
	if err := zipped.Close(); err != nil {
		return fmt.Errorf("compressing the profile of run %s: %w", run, err)
	}
	_, _, err = c.do(ctx, call{
		method: http.MethodPost, path: v1("runs", string(run), "profile", "batches"),
		body: body.Bytes(), contentType: "application/json", encoding: "gzip",
	})
	return err
}
