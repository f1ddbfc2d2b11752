package flame_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/flame"
)

// activity is an event of a self-profile; its strings are numbered from 0.
type activity struct {
	kind, event uint64
	thread      uint32
	start, end  uint64
}

const (
	firstRegular   = 100_000_003
	streamHeader   = 8
	withoutEnd     = 1<<48 - 1
	integerPayload = 1<<48 - 2
)

// reference is a string that another one contains.
func reference(id uint64) string {
	return "\xfe" + string(binary.LittleEndian.AppendUint64(nil, id))
}

// selfProfile writes a file. Text n has the identifier n, through the index.
func selfProfile(texts []string, activities ...activity) string {
	stream := func(magic string) []byte { return binary.LittleEndian.AppendUint32([]byte(magic), 9) }
	events, data, index := stream("MMES"), stream("MMSD"), stream("MMSI")
	for i, text := range texts {
		index = binary.LittleEndian.AppendUint64(index, uint64(i))
		index = binary.LittleEndian.AppendUint64(index, uint64(len(data)))
		data = append(data, text+"\xff"...)
	}
	for _, a := range activities {
		events = binary.LittleEndian.AppendUint64(events, a.kind)
		events = binary.LittleEndian.AppendUint64(events, a.event)
		events = binary.LittleEndian.AppendUint32(events, a.thread)
		events = binary.LittleEndian.AppendUint32(events, uint32(a.start))
		events = binary.LittleEndian.AppendUint32(events, uint32(a.end))
		events = binary.LittleEndian.AppendUint32(events, uint32(a.start>>32)<<16|uint32(a.end>>32))
	}
	file := binary.LittleEndian.AppendUint32([]byte("MMPD"), 9)
	for i, s := range [][]byte{events, data, index} {
		// Two pages per stream: an event may begin in one and end in the next.
		for _, page := range [][]byte{s[:len(s)/2], s[len(s)/2:]} {
			file = binary.LittleEndian.AppendUint32(append(file, byte(i)), uint32(len(page)))
			file = append(file, page...)
		}
	}
	return string(file)
}

// words has the kinds 0 to 2, and the labels 3 to 5.
var words = []string{"Query", "GenericActivity", "IncrementalResultHashing", "typeck", "mir_" + reference(3) + "\x1ea::b", "optimize"}

func folded(t *testing.T, file string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, flame.WriteFolded(&out, parse(t, flame.SelfProfile, file), "time"))
	return out.String()
}

func TestActivitiesOfTheCompilerBecomeStacks(t *testing.T) {
	t.Parallel()
	const late = 1 << 40 // needs more than 32 bits
	for name, test := range map[string]struct {
		activities []activity
		want       string
	}{
		"the inner one's time is not the outer one's": {
			[]activity{{0, 4, 1, 20, 50}, {0, 3, 1, 0, 100}}, "typeck 70\ntypeck;mir_typeck 30\n",
		},
		"the one recorded last is the outer one of equals": {
			[]activity{{0, 4, 1, 0, 10}, {0, 3, 1, 0, 10}}, "typeck 0\ntypeck;mir_typeck 10\n",
		},
		"one begins when another ends": {
			[]activity{{0, 3, 1, 0, 10}, {0, 4, 1, 10, 15}}, "mir_typeck 5\ntypeck 10\n",
		},
		"threads have stacks of their own": {
			[]activity{{1, 5, 2, 20, 50}, {0, 3, 1, 0, 100}}, "optimize 30\ntypeck 100\n",
		},
		"one outlasts what it began in": {
			[]activity{{0, 3, 1, 0, 100}, {0, 4, 1, 90, 120}}, "typeck 90\ntypeck;mir_typeck 10\n",
		},
		"other kinds are named": {
			[]activity{{2, 3, 1, 0, 5}, {0, 3, 1, 0, 100}}, "typeck 95\ntypeck;typeck (IncrementalResultHashing) 5\n",
		},
		"moments and numbers last no time": {
			[]activity{{0, 3, 1, 7, withoutEnd}, {0, 3, 1, 7, integerPayload}, {0, 3, 1, 0, 9}}, "typeck 9\n",
		},
		"the machine has run for long": {
			[]activity{{0, 3, 1, late, 2*late + 7}}, "typeck 1099511627783\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, folded(t, selfProfile(words, test.activities...)))
		})
	}
}

// An incremental compilation loads results of queries to which it gives no names.
func TestAQueryOfASelfProfileMayHaveNoName(t *testing.T) {
	t.Parallel()
	p, err := flame.Parse(flame.SelfProfile, strings.NewReader(selfProfile(words, activity{0, 77, 1, 0, 100})))
	require.NoError(t, err)
	require.Len(t, p.Sample, 1)
	require.Contains(t, p.Sample[0].Location[0].Line[0].Function.Name, "[query without a name]")
}

func TestADamagedSelfProfileIsRefused(t *testing.T) {
	t.Parallel()
	whole := selfProfile(words, activity{0, 3, 1, 0, 100})
	endless := []string{"Query", reference(1) + reference(1)}
	for name, test := range map[string]struct{ file, want string }{
		"another file":              {"package main", "MMPD"},
		"another version":           {strings.Replace(whole, "MMPD\x09", "MMPD\x08", 1), "file format is 8"},
		"cut within a page":         {whole[:len(whole)-1], "longer than the rest"},
		"cut within a header":       {whole + "\x00\x00", "header of a page"},
		"another stream":            {whole + "\x09\x00\x00\x00\x00", "stream 9"},
		"half an event":             {whole + "\x00\x01\x00\x00\x00x", "incomplete"},
		"no streams":                {whole[:streamHeader], "MMES"},
		"an unknown string":         {selfProfile(words, activity{77, 3, 1, 0, 100}), "string 77 has no address"},
		"a string outside":          {selfProfile(words, activity{0, firstRegular + 1<<40, 1, 0, 100}), "outside the strings"},
		"a string in the header":    {selfProfile(words, activity{0, firstRegular, 1, 0, 100}), "outside the strings"},
		"a string without an end":   {strings.ReplaceAll(selfProfile(words[:4], activity{0, 3, 1, 0, 100}), "\xff", "-"), "has no end"},
		"half a reference":          {selfProfile([]string{"Query", "\xfe"}, activity{0, 1, 1, 0, 100}), "within a reference"},
		"strings that never end":    {selfProfile(endless, activity{0, 1, 1, 0, 100}), "more than 10000"},
		"an end before a beginning": {selfProfile(words, activity{0, 3, 1, 100, 99}), "event 0 ends before"},
		"only moments":              {selfProfile(words, activity{0, 3, 1, 0, withoutEnd}), "no samples"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := flame.Parse(flame.SelfProfile, strings.NewReader(test.file))
			require.ErrorIs(t, err, flame.ErrNotAProfile)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// A library with one function that takes nearly all of the compiler's time to evaluate.
const slowToEvaluate = `
const fn slow(n: u64) -> u64 { let mut i = 0; let mut s = 0u64; while i < n { s = s.wrapping_mul(31).wrapping_add(i); i += 1; } s }
#[allow(long_running_const_eval)]
pub const SLOW: u64 = slow(300_000);
`

func TestTheInstalledRustTellsWhereItsTimeGoes(t *testing.T) {
	t.Parallel()
	if err := exec.CommandContext(t.Context(), "rustc", "+nightly", "--version").Run(); err != nil {
		t.Log("no nightly of Rust is installed, so it was not tried")
		return
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lib.rs"), []byte(slowToEvaluate), 0o600))
	rustc := exec.CommandContext(t.Context(), "rustc", "+nightly", "-Zself-profile="+dir, "--crate-type=lib", "--emit=metadata", "lib.rs")
	rustc.Dir = dir
	out, err := rustc.CombinedOutput()
	require.NoError(t, err, string(out))

	files, err := filepath.Glob(filepath.Join(dir, "*.mm_profdata"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	table := top(t, parse(t, flame.SelfProfile, string(data)), "")
	require.Equal(t, "nanoseconds", table.Unit)
	require.Equal(t, "eval_to_allocation_raw", table.Functions[0].Name)
}

func FuzzSelfProfile(f *testing.F) {
	f.Add([]byte(selfProfile(words, activity{0, 4, 1, 20, 50}, activity{0, 3, 1, 0, 100}, activity{2, 3, 2, 7, withoutEnd})))
	f.Add([]byte(selfProfile([]string{reference(0)}, activity{0, 0, 1, 0, 100})))
	f.Fuzz(func(t *testing.T, file []byte) {
		p, err := flame.Parse(flame.SelfProfile, bytes.NewReader(file))
		if err != nil {
			require.ErrorIs(t, err, flame.ErrNotAProfile)
			return
		}
		require.NoError(t, p.CheckValid())
		for _, s := range p.Sample {
			require.GreaterOrEqual(t, s.Value[1], int64(0))
		}
	})
}

func TestASelfProfileIsRecognised(t *testing.T) {
	t.Parallel()
	require.Equal(t, flame.SelfProfile, flame.Detect([]byte(selfProfile(words, activity{0, 3, 1, 0, 100}))))
}
