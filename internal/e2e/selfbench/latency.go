package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// histogram counts durations by the upper bounds of their buckets, in seconds; each count
// includes those below.
type histogram map[float64]uint64

// since leaves out what had been counted before.
func (h histogram) since(before histogram) histogram {
	out := maps.Clone(h)
	for bound, n := range before {
		out[bound] -= n
	}
	return out
}

// plus adds the counts of another histogram with the same bounds.
func (h histogram) plus(other histogram) histogram {
	out := maps.Clone(h)
	if out == nil {
		out = histogram{}
	}
	for bound, n := range other {
		out[bound] += n
	}
	return out
}

func (h histogram) count() int { return int(h[math.Inf(1)]) }

// quantile returns the duration in seconds that a part q of all do not exceed, evenly
// distributed within a bucket; 0 without any.
func (h histogram) quantile(q float64) float64 {
	rank := q * float64(h[math.Inf(1)])
	low, below := 0.0, 0.0
	for _, bound := range slices.Sorted(maps.Keys(h)) {
		n := float64(h[bound])
		if n > below && n >= rank {
			if math.IsInf(bound, 1) {
				return math.Inf(1)
			}
			return low + (bound-low)*(rank-below)/(n-below)
		}
		low, below = bound, n
	}
	return 0
}

// latencies returns what the API has counted for each kind of page.
func (p *pages) latencies(ctx context.Context) (map[string]histogram, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the API's metrics: %w", err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the API's metrics: %w", err)
	}
	out := map[string]histogram{ofRequest: {}, ofQueue: {}}
	for _, m := range families["benchloom_api_latency_seconds"].GetMetric() {
		for of, routes := range pageRoutes {
			if slices.ContainsFunc(routes, func(route string) bool { return isRoute(m, route) }) {
				out[of] = out[of].plus(bucketsOf(m.GetHistogram()))
			}
		}
	}
	return out, nil
}

// latenciesOf returns what the API has counted once that many visits are among it: metrics
// follow a second later.
func (p *pages) latenciesOf(ctx context.Context, before map[string]histogram, visits int) (map[string]histogram, error) {
	for {
		now, err := p.latencies(ctx)
		if err != nil {
			return nil, err
		}
		counted := 0
		for of := range now {
			counted += now[of].since(before[of]).count()
		}
		if counted >= visits {
			return now, nil
		}
		if err := sleep(ctx, lookSoon); err != nil {
			return nil, fmt.Errorf("waiting until the API has counted %d visits, now %d: %w", visits, counted, err)
		}
	}
}

// isRoute reports whether a metric is that of GET for a route, which metrics write in
// letters, digits and underscores.
func isRoute(m *dto.Metric, route string) bool {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return '_'
		}, s)
	}
	is := map[string]string{}
	for _, l := range m.GetLabel() {
		is[l.GetName()] = l.GetValue()
	}
	return is["method"] == http.MethodGet && plain(is["route"]) == plain(route)
}

func bucketsOf(h *dto.Histogram) histogram {
	out := histogram{math.Inf(1): h.GetSampleCount()}
	for _, b := range h.GetBucket() {
		out[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	return out
}
