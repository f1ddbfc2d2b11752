package bench_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

const linux = bench.Target("x86_64-unknown-linux-gnu")

// identity is a tracked job with every field set but the request.
func identity() bench.JobIdentity {
	return bench.JobIdentity{
		Project: "go", Tag: "1.26.1", Target: linux, Backend: "gc", Profile: "build",
		Kind: bench.KindCompileTime, Suite: "5f2c",
		TestCases: []bench.TestCase{
			{Benchmark: "gin", Profile: "build", Scenario: "full", Backend: "gc", Target: linux},
			{Benchmark: "gin", Profile: "build", Scenario: "incr-patched:println", Backend: "gc", Target: linux},
			{Benchmark: "hugo", Profile: "build", Scenario: "full", Backend: "gc", Target: linux},
		},
		SizeClass: 4, Generation: 1,
	}
}

// Keys are stored and stand in workflow IDs. With another hash, another order
// or another spelling of the fields, jobs that are done would be run again.
func TestKeysOfStoredJobsNeverChange(t *testing.T) {
	t.Parallel()
	require.Equal(t, bench.JobKey("h7ld53646uvnffig"), identity().Key())

	adHoc := bench.JobIdentity{
		Request: "rabcdefghjk", Project: "tools", Tag: "rabcdefghjk", Target: linux, Kind: bench.KindCommand, Suite: "00ff",
		TestCases: []bench.TestCase{{Benchmark: "sleep 1", Target: linux}}, SizeClass: 1,
	}
	require.Equal(t, bench.JobKey("32qsxamzvxs2vxp6"), adHoc.Key())
}

func TestTheOrderOfTestCasesDoesNotChangeTheKey(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	want := identity().Key()
	for range 50 {
		id := identity()
		random.Shuffle(len(id.TestCases), func(i, j int) {
			id.TestCases[i], id.TestCases[j] = id.TestCases[j], id.TestCases[i]
		})
		before := slices.Clone(id.TestCases)
		require.Equal(t, want, id.Key())
		require.Equal(t, before, id.TestCases, "the caller's list is left as it was")
	}
}

// The table has a row for every field, so that a field which is added and not
// hashed is seen here.
func TestEveryFieldChangesTheKey(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*bench.JobIdentity){
		"Request":    func(id *bench.JobIdentity) { id.Request = "rabcdefghjk" },
		"Project":    func(id *bench.JobIdentity) { id.Project = "rust" },
		"Tag":        func(id *bench.JobIdentity) { id.Tag = "1.26.2" },
		"Versus":     func(id *bench.JobIdentity) { id.Versus = "1.26.0" },
		"Target":     func(id *bench.JobIdentity) { id.Target = "aarch64-apple-darwin" },
		"Backend":    func(id *bench.JobIdentity) { id.Backend = "gccgo" },
		"Profile":    func(id *bench.JobIdentity) { id.Profile = "check" },
		"Kind":       func(id *bench.JobIdentity) { id.Kind = bench.KindRuntime },
		"Suite":      func(id *bench.JobIdentity) { id.Suite = "5f2d" },
		"TestCases":  func(id *bench.JobIdentity) { id.TestCases = id.TestCases[1:] },
		"SizeClass":  func(id *bench.JobIdentity) { id.SizeClass = 8 },
		"Pool":       func(id *bench.JobIdentity) { id.Pool = "two" },
		"Line":       func(id *bench.JobIdentity) { id.Line = 7 },
		"Profiler":   func(id *bench.JobIdentity) { id.Profiler = "perf" },
		"Chunk":      func(id *bench.JobIdentity) { id.Chunk = 2 },
		"Node":       func(id *bench.JobIdentity) { id.Node = "measure" },
		"Generation": func(id *bench.JobIdentity) { id.Generation = 2 },
	}
	caseChanges := map[string]func(*bench.TestCase){
		"Benchmark": func(tc *bench.TestCase) { tc.Benchmark = "caddy" },
		"Profile":   func(tc *bench.TestCase) { tc.Profile = "check" },
		"Scenario":  func(tc *bench.TestCase) { tc.Scenario = "incr-full" },
		"Backend":   func(tc *bench.TestCase) { tc.Backend = "gccgo" },
		"Target":    func(tc *bench.TestCase) { tc.Target = "aarch64-apple-darwin" },
	}
	require.Len(t, changes, reflect.TypeFor[bench.JobIdentity]().NumField())
	require.Len(t, caseChanges, reflect.TypeFor[bench.TestCase]().NumField())
	for field, change := range caseChanges {
		changes["TestCases[1]."+field] = func(id *bench.JobIdentity) { change(&id.TestCases[1]) }
	}

	seen := map[bench.JobKey]string{identity().Key(): "no change"}
	for field, change := range changes {
		id := identity()
		change(&id)
		key := id.Key()
		require.Empty(t, seen[key], "%s does not matter", field)
		seen[key] = field
	}
}

func TestTextThatMovesBetweenFieldsChangesTheKey(t *testing.T) {
	t.Parallel()
	seen := map[bench.JobKey]bool{}
	for _, id := range []bench.JobIdentity{
		{Project: "ab", Tag: "c"},
		{Project: "a", Tag: "bc"},
		{Project: `a","tag":"b`, Tag: "c"},
		{Backend: "x"},
		{Profile: "x"},
		{TestCases: []bench.TestCase{{Benchmark: "a"}, {Benchmark: "b"}}},
		{TestCases: []bench.TestCase{{Benchmark: "a", Profile: "b"}}},
		{TestCases: []bench.TestCase{{Benchmark: "a", Scenario: "b"}}},
		{TestCases: []bench.TestCase{{Benchmark: "a b"}}},
	} {
		key := id.Key()
		require.False(t, seen[key], "%+v", id)
		seen[key] = true
	}
}

func TestParseJobKey(t *testing.T) {
	t.Parallel()
	key := identity().Key()
	back, err := bench.ParseJobKey(string(key))
	require.NoError(t, err)
	require.Equal(t, key, back)

	for _, wrong := range []string{
		"", string(key[:15]), string(key) + "a", strings.ToUpper(string(key)), " " + string(key[1:]),
		string(key[:15]) + "1", string(key[:15]) + "0", string(key[:7]) + "-" + string(key[8:]), string(key[:15]) + "\n", string(key[:14]) + "é",
	} {
		_, err := bench.ParseJobKey(wrong)
		require.ErrorIs(t, err, bench.ErrInvalid, "%q", wrong)
		require.ErrorContains(t, err, "job's key")
	}
}

func TestRequestIDsAreGeneratedAndParsed(t *testing.T) {
	t.Parallel()
	random := rand.NewChaCha8([32]byte{7})
	letters := map[rune]bool{}
	seen := map[bench.RequestID]bool{}
	for range 2000 {
		id, err := bench.NewRequestID(random)
		require.NoError(t, err)
		require.False(t, seen[id], "drawn twice: %s", id)
		seen[id] = true

		back, err := bench.ParseRequestID(string(id))
		require.NoError(t, err)
		require.Equal(t, id, back)
		for _, letter := range string(id[1:]) {
			letters[letter] = true
		}
	}
	require.Len(t, letters, 31, "every letter occurs")
	for _, ambiguous := range "01ilo" {
		require.NotContains(t, letters, ambiguous)
	}
}

func TestTheSameRandomnessGivesTheSameRequestID(t *testing.T) {
	t.Parallel()
	draw := func() bench.RequestID {
		id, err := bench.NewRequestID(bytes.NewReader([]byte("0123456789abcdef")))
		require.NoError(t, err)
		return id
	}
	require.Equal(t, draw(), draw()) //nolint:testifylint // the point is that it is stable
	require.Equal(t, bench.RequestID("ruvwxyz2345"), draw())
}

func TestNewRequestIDNeedsRandomness(t *testing.T) {
	t.Parallel()
	_, err := bench.NewRequestID(iotest.ErrReader(io.ErrClosedPipe))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	_, err = bench.NewRequestID(strings.NewReader("short"))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, "drawing a request ID")
}

func TestInvalidRequestIDsAreRefused(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{
		"", "r", "rabcdefghj", "rabcdefghjkm", "xabcdefghjk", "Rabcdefghjk", "rABCDEFGHJK",
		"rabcdefghj0", "rabcdefghj1", "rabcdefghjl", "rabcdefghjo", "rabcd-fghjk", "rabcdefghj\n", " rabcdefghj", "rabcdefghé",
	} {
		_, err := bench.ParseRequestID(wrong)
		require.ErrorIs(t, err, bench.ErrInvalid, "%q", wrong)
		require.ErrorContains(t, err, "request ID")
	}
}

func TestRepeatedStartOfAnAttemptGivesTheSameRun(t *testing.T) {
	t.Parallel()
	key := identity().Key()
	first := bench.NewRunID(key, "0190-run", "5", 1)
	require.Equal(t, first, bench.NewRunID(key, "0190-run", "5", 1))
	require.Equal(t, bench.RunID(string(key)+"-55d5690c"), first, "stored run IDs never change")
	require.Equal(t, key, first.Job())

	// Whatever else differs, it is another run.
	other := bench.JobIdentity{}.Key()
	seen := map[bench.RunID]bool{first: true}
	for _, id := range []bench.RunID{
		bench.NewRunID(other, "0190-run", "5", 1),
		bench.NewRunID(key, "0191-run", "5", 1),
		bench.NewRunID(key, "0190-run", "6", 1),
		bench.NewRunID(key, "0190-run", "5", 2),
		bench.NewRunID(key, "0190-run5", "", 1),
		bench.NewRunID(key, "", "0190-run5", 1),
	} {
		require.False(t, seen[id], "%s", id)
		seen[id] = true

		back, err := bench.ParseRunID(string(id))
		require.NoError(t, err)
		require.Equal(t, id, back)
	}
}

func TestInvalidRunIDsAreRefused(t *testing.T) {
	t.Parallel()
	key := string(identity().Key())
	for _, wrong := range []string{
		"", "-", key, key + "-", key + "-0123abc", key + "-0123abcde", key + "-0123ABCD", key + "-0123abcg",
		key + "_0123abcd", "-0123abcd", key[1:] + "-0123abcd", key + "-0123abcd-", key + "--123abcd", key + "-0123abc\n",
	} {
		_, err := bench.ParseRunID(wrong)
		require.ErrorIs(t, err, bench.ErrInvalid, "%q", wrong)
		require.ErrorContains(t, err, "run ID")
	}
}
