package report

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/benchloom/benchloom/internal/stats"
)

// ID names the row in addresses, whatever it is compared with: the benchmark, its profile, scenario, backend and target, the
// line if it belongs to one, and the metric, separated by slashes and escaped as parts of a path:
//
//	gin/build/full/gc/x86_64-unknown-linux-gnu/wall-time
func (r Row) ID() string { return RowID(r.Key) }

// RowID returns the ID of a series' row, see [Row.ID].
func RowID(k stats.Key) string { return string(appendRowID(nil, &k)) }

// appendRowID appends the ID of a series' row.
func appendRowID(b []byte, k *stats.Key) []byte {
	for _, part := range [...]string{k.Benchmark, k.Profile, k.Scenario, k.Backend, k.Target} {
		b = append(append(b, url.PathEscape(part)...), '/')
	}
	if k.Line != "" {
		b = append(append(b, url.PathEscape(k.Line)...), '/')
	}
	return append(b, url.PathEscape(k.Metric)...)
}

// ParseRowID reads what [RowID] wrote. The error says what an ID looks like.
func ParseRowID(id string) (stats.Key, error) {
	parts := strings.Split(id, "/")
	const least = 6 // without a line
	bad := len(parts) < least || len(parts) > least+1
	for i, p := range parts {
		var err error
		parts[i], err = url.PathUnescape(p)
		bad = bad || err != nil || !utf8.ValidString(parts[i]) || strings.ContainsFunc(parts[i], unicode.IsControl)
	}
	if bad || parts[0] == "" || parts[len(parts)-1] == "" {
		return stats.Key{}, fmt.Errorf("%.80q is not the ID of a row: that is BENCHMARK/PROFILE/SCENARIO/BACKEND/TARGET/METRIC, with the line before the metric if there is one, and without a slash in a part", id)
	}
	k := stats.Key{
		TestCase: stats.TestCase{Benchmark: parts[0], Profile: parts[1], Scenario: parts[2], Backend: parts[3], Target: parts[4]},
		Metric:   parts[len(parts)-1],
	}
	if len(parts) > least {
		k.Line = parts[least-1]
	}
	return k, nil
}
