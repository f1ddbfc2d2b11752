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
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Collector is one benchmark machine or slot.
type Collector struct {
	Name          string               `json:"name"`
	Target        bench.Target         `json:"target"`
	SizeClass     bench.SizeClass      `json:"size_class"`
	Pool          string               `json:"pool"`
	State         bench.CollectorState `json:"state"`
	Version       string               `json:"version"`
	Epoch         int64                `json:"epoch"`
	HardwareID    string               `json:"hardware_id"`
	CoLocated     bool                 `json:"co_located"`
	Unenforced    []Unenforced         `json:"unenforced,omitempty"`
	Facts         json.RawMessage      `json:"facts,omitempty"`
	Labels        map[string]string    `json:"labels,omitempty"`
	BenchmarkSets []string             `json:"benchmark_sets,omitempty" doc:"Benchmark sets that it is meant for; for display only: projects bind sets to pools."`
	MachineType   string               `json:"machine_type" doc:"hw, vm or dc."`
	MachineGroup  string               `json:"machine_group,omitempty"`
	Devices       []string             `json:"devices,omitempty"`
	MemoryBytes   int64                `json:"memory_bytes,omitempty" doc:"Memory for a job; absent: not known, counted as 4 GiB times the size class."`
	CPUs          int                  `json:"cpus,omitempty" doc:"CPUs for a job; absent: not known, counted as its size class."`
	CacheDirs     []string             `json:"cache_dirs,omitempty" doc:"Reported cache directories."`
	Host          string               `json:"host,omitempty" doc:"Shared host of which it is a slot."`
	WantedVersion string               `json:"wanted_version,omitempty" doc:"Version that its pool must run; absent: any."`
	DisturbedBy   string               `json:"disturbed_by,omitempty" doc:"Why its last runs are disturbed."`
	SetAsideAt    *time.Time           `json:"set_aside_at,omitempty" doc:"Since when it is inactive for that reason, until its machine is quiet or, with canary_failed, a canary passes."`
	Stuck         bool                 `json:"stuck,omitempty" doc:"It was set aside until it is started anew: its slot can run nothing more."`
	CanaryFailed  bool                 `json:"canary_failed,omitempty" doc:"It waits for a canary to pass; if it is not set aside, its pool has no better live collector."`
	LastCanary    *Canary              `json:"last_canary,omitempty" doc:"Its newest canary; absent: it has had none."`
	CurrentRun    bench.RunID          `json:"current_run,omitempty"`
	RegisteredAt  time.Time            `json:"registered_at"`
	LastHeartbeat time.Time            `json:"last_heartbeat"`
	StateSince    *time.Time           `json:"state_since,omitempty" doc:"Since when it is in its state, as far as the record tells."`
	Use           *CollectorUse        `json:"use,omitempty" doc:"Of the last 24 hours, if requested."`
}

// Canary is the measurement of an artifact in turns with itself.
type Canary struct {
	Request   bench.RequestID     `json:"request,omitempty" doc:"Request that measures it; absent: it was removed."`
	Outcome   bench.CanaryOutcome `json:"outcome,omitempty" enum:"passed,changed,disturbed,unmeasured" doc:"Absent: it has not ended. changed and disturbed are failures; unmeasured says nothing about the collector."`
	Message   string              `json:"message,omitempty" doc:"What was found, or why nothing was measured."`
	CreatedAt time.Time           `json:"created_at"`
	EndedAt   *time.Time          `json:"ended_at,omitempty"`
}

// Unenforced is a limit that a collector could not enforce.
type Unenforced struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Registration announces a collector.
type Registration struct {
	Name string `json:"name"`
	// Target, SizeClass and Pool may be left out by an invited collector: it gets the
	// configured ones.
	Target     bench.Target    `json:"target"`
	SizeClass  bench.SizeClass `json:"size_class" minimum:"0" maximum:"4096"`
	Pool       string          `json:"pool"`
	Host       bench.Target    `json:"host,omitempty" doc:"The machine's own target; absent: not known."`
	MachineID  string          `json:"machine_id" minLength:"8" maxLength:"128" doc:"Stays the same when the collector restarts on the same machine and state directory."`
	Version    string          `json:"version"`
	HardwareID string          `json:"hardware_id"`
	Facts      json.RawMessage `json:"facts"`
	Unenforced []Unenforced    `json:"unenforced,omitempty"`
	CoLocated  bool            `json:"co_located"`

	Labels        map[string]string `json:"labels,omitempty"`
	BenchmarkSets []string          `json:"benchmark_sets,omitempty" doc:"Benchmark sets that it is meant for; for display only: projects bind sets to pools."`

	MachineType  string   `json:"machine_type,omitempty" doc:"hw, vm or dc; absent: hw."`
	MachineGroup string   `json:"machine_group,omitempty" doc:"Machines of one make."`
	Devices      []string `json:"devices,omitempty" maxItems:"100"`
	MemoryBytes  int64    `json:"memory_bytes,omitempty" minimum:"0" doc:"What a job may use; 0: not known."`
	CPUs         int      `json:"cpus,omitempty" minimum:"0" doc:"What a job may use; 0: not known."`
	CacheDirs    []string `json:"cache_dirs,omitempty" maxItems:"1000" doc:"Two levels of directory names below its cache root."`
	SharedHost   string   `json:"shared_host,omitempty" doc:"Shared host of which it is a slot."`
}

// Registered is the answer to a registration.
type Registered struct {
	Collector Collector `json:"collector"`
	// TaskQueue is the task queue of its pool.
	TaskQueue string `json:"task_queue"`
	// TaskQueues lists the task queues of its jobs, its pool's first; at most four.
	TaskQueues []string `json:"task_queues"`
	// HeartbeatSeconds is the interval of its heartbeats.
	HeartbeatSeconds int `json:"heartbeat_seconds"`
	// TemporalToken asks it to send its own token to Temporal.
	TemporalToken bool `json:"temporal_token,omitempty"`
}

// Heartbeat is a collector's sign of life, with its progress.
type Heartbeat struct {
	Epoch    int64       `json:"epoch"`
	Run      bench.RunID `json:"run,omitempty"`
	Progress RunProgress `json:"progress,omitzero"`
	// CacheDirs replaces the directories reported before; nil if nothing has changed.
	CacheDirs *[]string `json:"cache_dirs,omitempty" maxItems:"1000"`
	// CountWaiting asks for the number of waiting jobs.
	CountWaiting bool `json:"count_waiting,omitempty"`
	// Disturbed says, for a collector that was set aside, what has disturbed its machine
	// since its last heartbeat; empty: nothing; nil: it was not read.
	Disturbed *string `json:"disturbed,omitempty" maxLength:"1000"`
	// Stuck says why the collector can measure nothing until it is restarted; empty: it can.
	Stuck string `json:"stuck,omitempty" maxLength:"4000" doc:"Why it can measure nothing until it is started anew; absent: it can."`
	// AskWaits asks how long the jobs have waited. Slots of a shared host set it.
	AskWaits bool `json:"ask_waits,omitempty"`
}

// HeartbeatAnswer is the API's instruction to a collector.
type HeartbeatAnswer struct {
	// Active is false if it must take no further job.
	Active bool `json:"active"`
	// SetAside asks a collector that was set aside to read its machine, and to tell with
	// its next heartbeat whether it is disturbed.
	SetAside bool `json:"set_aside,omitempty"`
	// WantedVersion is the version that it must run; empty: any. A collector of
	// another version finishes its job and exits.
	WantedVersion string `json:"wanted_version,omitempty"`
	// TaskQueues lists the task queues of its jobs, its pool's first; at most four.
	TaskQueues []string `json:"task_queues"`
	// Waiting counts the jobs of its task queues that have not begun, if requested.
	Waiting *int `json:"waiting,omitempty"`
	// Waits holds, by task queue, the seconds that the oldest job which was handed
	// out but has not begun has waited, if requested. Queues without such a job are
	// left out.
	Waits map[string]float64 `json:"waits,omitempty"`
	// RunClosed says how the heartbeat's run has ended in the record, and why; empty: it
	// has not. The collector ends it.
	RunClosed string `json:"run_closed,omitempty"`
	// Now is the API's time. A collector's own clock is trusted only for the times of
	// collections.
	Now time.Time `json:"now"`
}

// Collectors lists all collectors.
func (c *Client) Collectors(ctx context.Context) ([]Collector, error) {
	list, err := get[CollectorList](ctx, c, v1("collectors"), nil)
	return list.Collectors, err
}

// Collector reads one collector.
func (c *Client) Collector(ctx context.Context, name string) (Collector, error) {
	return get[Collector](ctx, c, v1("collectors", name), nil)
}

// DrainCollector lets a collector finish its job and take no other. The reason is recorded
// in the audit; it may be empty.
func (c *Client) DrainCollector(ctx context.Context, name, reason string) (Collector, error) {
	return post[Collector](ctx, c, v1("collectors", name, "drain"), Reason{reason})
}

// ActivateCollector lets a collector take jobs again. The reason is recorded in the audit;
// it may be empty.
func (c *Client) ActivateCollector(ctx context.Context, name, reason string) (Collector, error) {
	return post[Collector](ctx, c, v1("collectors", name, "activate"), Reason{reason})
}

// RemoveCollector removes an offline collector; with force, also a live one, whose
// process is refused from then on.
func (c *Client) RemoveCollector(ctx context.Context, name string, force bool) error {
	query := url.Values{}
	if force {
		query.Set("force", "true")
	}
	_, _, err := c.do(ctx, call{method: http.MethodDelete, path: v1("collectors", name), query: query})
	return err
}

// RegisterCollector registers a collector. The error is [ErrNameTaken] if another live
// machine has the name.
func (c *Client) RegisterCollector(ctx context.Context, r Registration) (Registered, error) {
	return post[Registered](ctx, c, v1("collectors", "register"), r)
}

// Heartbeat reports that a collector is live. The error is [ErrFenced] if the collector
// has been registered again since.
func (c *Client) Heartbeat(ctx context.Context, name string, beat Heartbeat) (HeartbeatAnswer, error) {
	return post[HeartbeatAnswer](ctx, c, v1("collectors", name, "heartbeat"), beat)
}

// StartRun asks at the fence whether a run may begin. Its errors are
// [ErrJobClosed], [ErrNobodyWaits], [ErrFenced], [ErrDraining], [ErrOutdated],
// [ErrUnfit], [ErrElsewhere], [ErrStaleDispatch] and [ErrUnderWay]. Asking again gives the same answer.
func (c *Client) StartRun(ctx context.Context, run bench.RunID, start RunStart) (RunPlan, error) {
	return post[RunPlan](ctx, c, v1("runs", string(run), "start"), start)
}

// UploadBlock uploads a finished block; numbers count from 1 within a run. Uploading
// it again changes nothing.
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

// AppendLog uploads output of a run that begins at offset, and returns the offset of
// the next piece. Uploading a piece again is allowed.
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
