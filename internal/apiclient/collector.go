package apiclient

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/benchloom/benchloom/internal/bench"
)

// Collectors lists all collectors.
func (c *Client) Collectors(ctx context.Context) ([]Collector, error) {
	list, err := get[CollectorList](ctx, c, v1("collectors"), nil)
	return list.Collectors, err
}

// Collector reads one collector.
func (c *Client) Collector(ctx context.Context, name string) (Collector, error) {
	return get[Collector](ctx, c, v1("collectors", name), nil)
}

// DrainCollector lets a collector finish its job and take no other.
func (c *Client) DrainCollector(ctx context.Context, name string) (Collector, error) {
	return post[Collector](ctx, c, v1("collectors", name, "drain"), nil)
}

// ActivateCollector lets a collector take jobs again.
func (c *Client) ActivateCollector(ctx context.Context, name string) (Collector, error) {
	return post[Collector](ctx, c, v1("collectors", name, "activate"), nil)
}

// RemoveCollector forgets a collector that is offline; with force also one that
// lives, whose process is refused from then on.
func (c *Client) RemoveCollector(ctx context.Context, name string, force bool) error {
	query := url.Values{}
	if force {
		query.Set("force", "true")
	}
	_, _, err := c.do(ctx, call{method: http.MethodDelete, path: v1("collectors", name), query: query})
	return err
}

// RegisterCollector makes a collector known. Its error is [ErrNameTaken] when
// another live machine has the name.
func (c *Client) RegisterCollector(ctx context.Context, r Registration) (Registered, error) {
	return post[Registered](ctx, c, v1("collectors", "register"), r)
}

// Heartbeat says that a collector lives. Its error is [ErrFenced] when the
// collector was registered again since.
func (c *Client) Heartbeat(ctx context.Context, name string, beat Heartbeat) (HeartbeatAnswer, error) {
	return post[HeartbeatAnswer](ctx, c, v1("collectors", name, "heartbeat"), beat)
}

// StartRun asks at the fence whether a run may begin. Its errors are
// [ErrJobClosed], [ErrNobodyWaits], [ErrFenced], [ErrDraining] and
// [ErrOutdated]. Asking again gives the same
// answer.
func (c *Client) StartRun(ctx context.Context, run bench.RunID, start RunStart) (RunPlan, error) {
	return post[RunPlan](ctx, c, v1("runs", string(run), "start"), start)
}

// UploadBlock delivers a finished block; numbers count from 1 within a run.
// Delivering it again changes nothing.
func (c *Client) UploadBlock(ctx context.Context, run bench.RunID, number int, block Block) (receipt BlockReceipt, err error) {
	var body bytes.Buffer
	zipped := gzip.NewWriter(&body)
	if err := json.NewEncoder(zipped).Encode(block); err != nil {
		return receipt, fmt.Errorf("encoding block %d of run %s: %w", number, run, err)
	}
	if err := zipped.Close(); err != nil {
		return receipt, fmt.Errorf("compressing block %d of run %s: %w", number, run, err)
	}
	_, _, err = c.do(ctx, call{
		method: http.MethodPost, path: v1("runs", string(run), "blocks", strconv.Itoa(number)),
		body: body.Bytes(), contentType: "application/json", encoding: "gzip", out: &receipt, timeout: transferTimeout,
	})
	return receipt, err
}

// AppendLog delivers output of a run that begins at offset, and gives the
// offset of what is to follow. What was delivered before is tolerated.
func (c *Client) AppendLog(ctx context.Context, run bench.RunID, offset int64, data []byte) (next int64, err error) {
	var receipt LogReceipt
	_, _, err = c.do(ctx, call{
		method: http.MethodPost, path: v1("runs", string(run), "log"), query: url.Values{"offset": {strconv.FormatInt(offset, 10)}},
		body: data, contentType: "application/octet-stream", out: &receipt,
	})
	return receipt.NextOffset, err
}

// FinishRun closes a run. Closing it again changes nothing.
func (c *Client) FinishRun(ctx context.Context, run bench.RunID, finish RunFinish) error {
	_, _, err := c.do(ctx, call{method: http.MethodPost, path: v1("runs", string(run), "finish"), in: finish})
	return err
}
