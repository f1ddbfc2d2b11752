package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/up"
)

const (
	probeEvery = 250 * time.Millisecond
	pollEvery  = time.Second
	// jobPatience bounds the time that the flood goes on beyond its duration, for a job to end.
	jobPatience = 5 * time.Minute
	// heartbeatRoute ends the API's route of heartbeats, which metrics name by letters,
	// digits and underscores.
	heartbeatRoute = "_heartbeat"
)

// fill runs commands until that many iterations are stored.
func fill(ctx context.Context, api *apiclient.Client, iterations int) error {
	for left := iterations; left > 0; left -= bench.MaxIterations {
		if err := runJob(ctx, api, apiclient.Command{Argv: []string{"true"}, Iterations: min(left, bench.MaxIterations)}); err != nil {
			return fmt.Errorf("measuring before the flood: %w", err)
		}
	}
	return nil
}

// runJob submits a command and waits for its success.
func runJob(ctx context.Context, api *apiclient.Client, command apiclient.Command) error {
	var id string
	err := apiclient.Retry(ctx, apiclient.RetryPolicy{For: time.Minute}, func(ctx context.Context) error {
		created, err := api.CreateRequest(ctx, apiclient.NewRequest{Command: &command})
		id = string(created.ID)
		return err
	})
	if err != nil {
		return err
	}
	for {
		var r apiclient.RequestDetail
		err := apiclient.Retry(ctx, apiclient.RetryPolicy{For: time.Minute}, func(ctx context.Context) (err error) {
			r, err = api.Request(ctx, id)
			return err
		})
		switch {
		case err != nil:
			return err
		case r.Status == bench.Completed && r.Outcome == bench.Success:
			return nil
		case r.Status == bench.Completed:
			return fmt.Errorf("request %s ended with %s: %s", r.ID, r.Outcome, r.Message)
		}
		if pause(ctx, probeEvery); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// watch observes a stack under load.
type watch struct {
	api            *apiclient.Client
	address, token string
	pid            int // of the API
	client         *http.Client
	ended          chan struct{} // closed when a job has ended
}

func newWatch(stack *livestack.Stack) (*watch, error) {
	pids, err := stack.Processes()
	if err != nil {
		return nil, err
	}
	if pids["api"] == 0 {
		return nil, errors.New("the stack has no process api")
	}
	token, err := devstack.ReadToken(stack.State(), up.TokenUser)
	if err != nil {
		return nil, err
	}
	return &watch{api: stack.API, address: stack.Up.Addresses[up.AddressAPI], token: token, pid: pids["api"], client: &http.Client{Timeout: 30 * time.Second}, ended: make(chan struct{})}, nil
}

// enough ends the flood once a job has ended: on a busy machine, none may within a short one.
func (w *watch) enough(ctx context.Context, stop context.CancelFunc) {
	select {
	case <-w.ended:
		stop()
	case <-ctx.Done():
	}
}

// until observes until the context ends.
func (w *watch) until(ctx context.Context) (*findings, error) {
	defer w.client.CloseIdleConnections()
	found := &findings{}
	before, err := w.scrape(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join("/proc", strconv.Itoa(w.pid), "clear_refs"), []byte("5"), 0); err != nil {
		return nil, fmt.Errorf("resetting the peak memory of the API: %w", err)
	}
	var mu sync.Mutex
	var probes sync.WaitGroup
	repeat := func(every time.Duration, errs *[]error, probe func() error) {
		probes.Go(func() {
			for ctx.Err() == nil {
				if err := probe(); err != nil && ctx.Err() == nil {
					mu.Lock()
					*errs = append(*errs, err)
					mu.Unlock()
				}
				pause(ctx, every)
			}
		})
	}
	repeat(probeEvery, &found.failed, func() error { return w.timed(ctx, "/readyz", &found.ready) })
	repeat(probeEvery, &found.failed, func() error { return w.timed(ctx, "/api/v1/requests?limit=25", &found.page) })
	repeat(pollEvery, &found.failed, func() error { return w.listen(ctx, &found.silence) })
	repeat(0, &found.errs, func() error {
		err := runJob(ctx, w.api, apiclient.Command{Argv: []string{"sleep", "0.5"}})
		if err == nil {
			if found.jobs++; found.jobs == 1 {
				close(w.ended)
			}
		}
		return err
	})
	probes.Wait()
	// The context has ended, but the last figures are still to be read.
	after, err := w.scrape(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	found.heartbeats, found.refused = after.latency.since(before.latency), after.refused-before.refused
	found.peak, err = peakMemory(w.pid)
	return found, err
}

// timed makes a call and keeps how long it took.
func (w *watch) timed(ctx context.Context, path string, took *[]time.Duration) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.address+path, nil)
	if err != nil {
		return err
	}
	// The flood uses up what strangers of this address may call.
	request.Header.Set("Authorization", "Bearer "+w.token)
	begun := time.Now()
	response, err := w.client.Do(request)
	if err != nil {
		return fmt.Errorf("calling %s: %w", path, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", path, response.Status)
	}
	*took = append(*took, time.Since(begun))
	return nil
}

// listen keeps the longest silence of a collector.
func (w *watch) listen(ctx context.Context, silence *time.Duration) error {
	collectors, err := w.api.Collectors(ctx)
	for _, c := range collectors {
		*silence = max(*silence, time.Since(c.LastHeartbeat))
	}
	return err
}

// scraped are metrics of heartbeats.
type scraped struct {
	latency histogram
	refused float64
}

func (w *watch) scrape(ctx context.Context) (scraped, error) {
	var s scraped
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.address+"/metrics", nil)
	if err != nil {
		return s, err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return s, fmt.Errorf("reading the API's metrics: %w", err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return s, fmt.Errorf("reading the API's metrics: %w", err)
	}
	for _, m := range families["benchloom_api_latency_seconds"].GetMetric() {
		if strings.HasSuffix(label(m, "route"), heartbeatRoute) {
			s.latency = bucketsOf(m.GetHistogram())
		}
	}
	for _, m := range families["benchloom_api_requests_total"].GetMetric() {
		if strings.HasSuffix(label(m, "route"), heartbeatRoute) && label(m, "status") != "2xx" {
			s.refused += m.GetCounter().GetValue()
		}
	}
	return s, nil
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func bucketsOf(h *dto.Histogram) histogram {
	out := histogram{math.Inf(1): h.GetSampleCount()}
	for _, b := range h.GetBucket() {
		out[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	return out
}

// peakMemory returns the peak of a process's resident memory, in bytes.
func peakMemory(pid int) (int64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of the API: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, errors.New("reading the memory of the API: it has ended")
}
