package apiclient

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
)

// SendProfile uploads what the profiling agent beside a run has recorded. Uploading it again changes nothing.
func (c *Client) SendProfile(ctx context.Context, run bench.RunID, u profiler.Upload) error {
	var body bytes.Buffer
	zipped := fastGzip(&body)
	defer keep(zipped)
	if err := json.NewEncoder(zipped).Encode(u); err != nil {
		return fmt.Errorf("encoding the profile of run %s: %w", run, err)
	}
	if err := zipped.Close(); err != nil {
		return fmt.Errorf("compressing the profile of run %s: %w", run, err)
	}
	_, _, err := c.do(ctx, call{
		method: http.MethodPost, path: v1("runs", string(run), "profile", "batches"),
		body: body.Bytes(), contentType: "application/json", encoding: "gzip",
	})
	return err
}

// zipper keeps a writer of [fastGzip], since making one costs more CPU time than compressing
// an agent's upload. A pool would lose it with every garbage collection.
var zipper = make(chan *gzip.Writer, 1)

// fastGzip returns a writer that compresses as fast as it can: the CPU time of a collector is worth more than the last tenth of the bytes.
func fastGzip(to io.Writer) *gzip.Writer {
	select {
	case known := <-zipper:
		known.Reset(to)
		return known
	default:
		zipped, _ := gzip.NewWriterLevel(to, gzip.BestSpeed) // fails only for an unknown level
		return zipped
	}
}

// keep keeps a writer of [fastGzip] for the next upload.
func keep(zipped *gzip.Writer) {
	select {
	case zipper <- zipped:
	default:
	}
}
