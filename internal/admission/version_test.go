package admission_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/admission"
)

func TestVersionsAreOrderedAsVersions(t *testing.T) {
	t.Parallel()
	ascending := func(name, versions string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := strings.Fields(versions)
			for i, earlier := range want {
				for _, later := range want[i+1:] {
					require.Equal(t, -1, admission.CompareVersions(earlier, later), "%s before %s", earlier, later)
					require.Equal(t, 1, admission.CompareVersions(later, earlier), "%s after %s", later, earlier)
				}
			}
		})
	}
	ascending("digit counts", "1.2.0 1.9.0 1.10.0 1.100.0 2.0.0 10.0.0")
	ascending("missing numbers are zero", "1.9 1.9.0 1.9.0.0 1.9.0.1 1.9.1")
	ascending("go releases", "go1 go1.4 go1.20.14 go1.21rc2 go1.21rc10 go1.21 go1.21.0 go1.21.1 go1.25beta1 go1.25rc1 go1.25")
	ascending("semantic versions", "v1.0.0-alpha v1.0.0-alpha.1 v1.0.0-alpha.beta v1.0.0-beta v1.0.0-beta.2 v1.0.0-beta.11 v1.0.0-rc.1 v1.0.0")
	ascending("dates", "nightly-2025-12-31 nightly-2026-01-01 nightly-2026-01-02 nightly-2026-02-01 nightly-2026-10-01")
	ascending("prefixes keep together", "1.80.0 1.91.0 beta-2026-01-01 beta-2026-02-01 nightly-2025-01-01")
	ascending("v and go mean nothing", "1.9.0 v1.9.1 go1.9.2 1.9.3")
	ascending("no number fits an integer", "1.99999999999999999999998 1.99999999999999999999999 1.100000000000000000000000")
	ascending("no digits", "beta nightly stable")
	ascending("letter case", "1.0.0-RC1 1.0.0-rc2 1.0.0-RC3 1.0.0")
	ascending("numbers before all else in a pre-release", "1.0.0-1 1.0.0-10 1.0.0-!")
	ascending("build metadata", "1.0.0+a 1.0.0+b 1.0.1+a")
	ascending("nonsense", "- -- . 1.-")
}

func FuzzCompareVersions(f *testing.F) {
	for _, s := range [][3]string{
		{"1.9.0", "1.10.0", "go1.25rc1"}, {"nightly-2026-01-01", "", "v"}, {"1.0.0-rc.1", "1.0.0+x", "1..0"}, {"\xff1", "1\xff", "0-0"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		compare := admission.CompareVersions
		require.Equal(t, -compare(b, a), compare(a, b), "not antisymmetric: %q %q", a, b)
		require.Equal(t, a == b, compare(a, b) == 0, "not total: %q %q", a, b)
		if compare(a, b) <= 0 && compare(b, c) <= 0 {
			require.LessOrEqual(t, compare(a, c), 0, "not transitive: %q %q %q", a, b, c)
		}
	})
}
