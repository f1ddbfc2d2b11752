package flame_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/flame"
)

func TestDHATTellsWhereMemoryIsAllocated(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "c.dhat"))
	require.NoError(t, err)
	require.Equal(t, flame.DHAT, flame.Detect(text[:200]))
	p := parse(t, flame.DHAT, string(text))
	require.Equal(t, []string{"alloc_objects", "end_space", "max_space", "alloc_space"}, flame.Types(p))
	all := top(t, p, "")
	require.Equal(t, []any{"alloc_space", "bytes", int64(83_920)}, []any{all.Type, all.Unit, all.Sum})
	require.EqualValues(t, 81_920, function(t, all, "hoard").Total)
	require.Equal(t, "p.c", function(t, all, "hoard").File)
	require.EqualValues(t, 83_920, function(t, all, "malloc").Self, "the innermost frame is the one that allocates")
	require.Zero(t, function(t, top(t, p, "end_space"), "borrow").Total, "what was freed is not there at the end")
	require.EqualValues(t, 100, function(t, top(t, p, "max_space"), "borrow").Total)
	require.EqualValues(t, 40, top(t, p, "alloc_objects").Sum)
}

// DHAT of this machine, of a program that allocates.
func TestDHATOfThisMachineIsRead(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"gcc", "valgrind"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Logf("%s is not installed, so nothing was tried", program)
			return
		}
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.c"), []byte(`
#include <stdlib.h>
__attribute__((noinline)) char *planted(int n) { char *p = malloc(n); p[0] = 1; return p; }
int main(void) { int s = 0; for (int i = 0; i < 9; i++) { char *p = planted(1000); s += p[0]; free(p); } return s - 9; }
`), 0o600))
	for _, argv := range [][]string{{"gcc", "-O1", "-g", "-fno-optimize-sibling-calls", "-o", "p", "p.c"}, {"valgrind", "--tool=dhat", "--dhat-out-file=out", "./p"}} {
		c := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "out"))
	require.NoError(t, err)
	require.EqualValues(t, 9000, function(t, top(t, parse(t, flame.DHAT, string(text)), ""), "planted").Total)
}

// threadOfSamply is a profile with the tables of its thread, as samply writes it: two stacks, of which one has no symbols.
const threadOfSamply = `{"meta":{"interval":1.0,"preprocessedProfileVersion":49,"processType":0,"product":"app","sampleUnits":{"eventDelay":"ms","threadCPUDelta":"µs","time":"ms"},"symbolicated":false,"version":24},
"libs":[{"name":"libc.so.6","path":"/usr/lib/libc.so.6"}],
"threads":[{"name":"app","pid":1,"tid":1,"stringArray":["app::main","app::hot","0x18c77","libc.so.6","src/main.rs"],
"frameTable":{"length":3,"address":[1,2,101495],"func":[0,1,2],"line":[1,2,null]},
"funcTable":{"length":3,"name":[0,1,2],"resource":[-1,-1,0],"fileName":[4,4,null]},
"resourceTable":{"length":1,"lib":[0],"name":[3],"type":[1]},
"stackTable":{"length":3,"prefix":[null,0,0],"frame":[0,1,2]},
"samples":{"length":5,"stack":[1,1,2,null,1],"time":[1,2,3,4,5],"weight":[1,2,1,1,1],"weightType":"samples","threadCPUDelta":[0,900,100,null,1000]}}]}`

func TestProfilesOfSamplyAreRead(t *testing.T) {
	t.Parallel()
	require.Equal(t, flame.Firefox, flame.Detect([]byte(threadOfSamply)[:300]))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte(threadOfSamply))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.Equal(t, flame.Firefox, flame.Detect(packed.Bytes()), "samply compresses")
	for _, text := range []string{threadOfSamply, packed.String()} {
		p := parse(t, flame.Firefox, text)
		require.Equal(t, []string{"samples", "cpu"}, flame.Types(p))
		samples := top(t, p, "samples")
		require.EqualValues(t, 5, samples.Sum, "a sample without a stack is none")
		require.EqualValues(t, 4, function(t, samples, "app::hot").Self)
		require.EqualValues(t, 5, function(t, samples, "app::main").Total)
		require.Equal(t, "src/main.rs", function(t, samples, "app::main").File)
		require.EqualValues(t, 1, function(t, samples, "libc.so.6 0x18c77").Self)
		require.EqualValues(t, 2_000_000, top(t, p, "").Sum, "microseconds of CPU time")
	}
	// Newer versions share the tables, and weights may be lacking.
	shared := `{"meta":{"preprocessedProfileVersion":58},"shared":{"stringArray":["a","b"],"stackTable":{"prefix":[null,0],"frame":[0,1]},"frameTable":{"func":[0,1]},"funcTable":{"name":[0,1]}},
		"threads":[{"samples":{"stack":[1,0],"weight":null}},{"samples":{"stack":[1]}}]}`
	table := top(t, parse(t, flame.Firefox, shared), "")
	require.EqualValues(t, 3, table.Sum)
	require.EqualValues(t, 2, function(t, table, "b").Self)
}

func TestJSONThatIsNoProfileIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format     flame.Format
		text, want string
	}{
		{flame.DHAT, `{"dhatFileVersion":3,"pps":[]}`, "version 3"},
		{flame.DHAT, `{"dhatFileVersion":2,"pps":[{"tb":1,"tbk":1,"fs":[7]}],"ftbl":["[root]"]}`, "the frame 7 of 1"},
		{flame.DHAT, `{"dhatFileVersion":2,"pps":[]}`, "no samples"},
		{flame.DHAT, `{"dhatFileVersion":2`, "unexpected end"},
		{flame.DHAT, `{"dhatFileVersion":2,"pps":[{"tb":9223372036854775807,"tbk":1,"fs":[0]},{"tb":9,"tbk":1,"fs":[0]}],"ftbl":["a"]}`, "too large"},
		{flame.Firefox, `{}`, "preprocessedProfileVersion"},
		{flame.Firefox, `{"meta":{"preprocessedProfileVersion":1},"threads":[{"samples":{"stack":[0]}}]}`, "lacks one of"},
		{flame.Firefox, strings.Replace(threadOfSamply, `"prefix":[null,0,0]`, `"prefix":[null,2,1]`, 1), "comes after it"},
		{flame.Firefox, strings.Replace(threadOfSamply, `"frame":[0,1,2]`, `"frame":[0,9,2]`, 1), "no frame 9"},
		{flame.Firefox, strings.Replace(threadOfSamply, `"func":[0,1,2]`, `"func":[0,-1,2]`, 1), "no function -1"},
		{flame.Firefox, strings.Replace(threadOfSamply, `"name":[0,1,2]`, `"name":[0,99,2]`, 1), "no string 99"},
		{flame.Firefox, strings.Replace(threadOfSamply, `"stack":[1,1,`, `"stack":[77,1,`, 1), "no stack 77"},
		{flame.Firefox, strings.Replace(threadOfSamply, `"weight":[1,2,`, `"weight":[1e300,2,`, 1), "too large"},
	} {
		_, err := flame.Parse(c.format, strings.NewReader(c.text))
		require.ErrorIs(t, err, flame.ErrNotAProfile, c.text)
		require.ErrorContains(t, err, c.want)
	}
}
