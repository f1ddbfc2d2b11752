// Package metrics provides the tally scope of a process and the handler from
// which Prometheus reads it.
//
// It must not know what is counted.
package metrics

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/uber-go/tally/v4"
	tallyprometheus "github.com/uber-go/tally/v4/prometheus"
	"go.temporal.io/sdk/client"
	sdktally "go.temporal.io/sdk/contrib/tally"
)

// Metrics holds the metrics of one process.
type Metrics struct {
	// Scope is for the process's own metrics: their names in Prometheus begin
	// with "benchloom_".
	Scope tally.Scope
	// SDK is for Temporal clients and workers: names begin with "temporal_".
	SDK client.MetricsHandler
	// Handler serves /metrics.
	Handler http.Handler
	io.Closer
}

// seconds lists histogram bounds from a millisecond to an hour.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 1800, 3600}

// maxScrapes bounds the answers of /metrics that are under way at once; others get 503.
const maxScrapes = 4

// New returns the metrics of a process; component is a label on each.
func New(component, version string) (*Metrics, error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(collectors.NewGoCollector()); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	if err := registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	buckets := make([]tallyprometheus.HistogramObjective, len(seconds))
	for i, s := range seconds {
		buckets[i].Upper = s
	}
	config := tallyprometheus.Configuration{TimerType: "histogram", DefaultHistogramBuckets: buckets}
	reporter, err := config.NewReporter(tallyprometheus.ConfigurationOptions{
		Registry: registry,
		OnError:  func(error) {}, // a metric registered twice with other labels is dropped, not fatal
	})
	if err != nil {
		return nil, fmt.Errorf("making the metrics reporter: %w", err)
	}
	root, closer := tally.NewRootScope(tally.ScopeOptions{
		CachedReporter:  reporter,
		Separator:       tallyprometheus.DefaultSeparator,
		SanitizeOptions: &sdktally.PrometheusSanitizeOptions,
		Tags:            map[string]string{"component": component, "version": version},
	}, time.Second)
	return &Metrics{
		Scope:   sdktally.NewPrometheusNamingScope(root).SubScope("benchloom"),
		SDK:     sdktally.NewMetricsHandler(sdktally.NewPrometheusNamingScope(root)),
		Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}),
		Closer:  closer,
	}, nil
}
