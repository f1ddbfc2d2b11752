package bench_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestParseMemory(t *testing.T) {
	t.Parallel()
	const gib = int64(1) << 30
	for text, want := range map[string]int64{
		"8": 8 * gib, "8g": 8 * gib, "8G": 8 * gib, "8 gb": 8 * gib, "8GB": 8 * gib, "8GiB": 8 * gib, "8192m": 8 * gib, "8192 MiB": 8 * gib,
		"8388608k": 8 * gib, " 8g ": 8 * gib, "1t": 1024 * gib, "1TB": 1024 * gib, "512m": gib / 2, "8 gigabytes": 8 * gib, "008": 8 * gib,
	} {
		got, err := bench.ParseMemory(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"-1", "0", "0m", "1e9", "8x", "8 gx", "8b", "8 g b", "1.5g", "", "g", "8g8", "+8", "９", "9999999999999999999", "9223372036854775807k", "2000000t"} {
		_, err := bench.ParseMemory(text)
		require.ErrorIs(t, err, bench.ErrInvalid, text)
		require.ErrorContains(t, err, "write a whole number of gigabytes such as 8", text)
	}
}

func TestMemoryWords(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{8 << 30: "8g", 1536 << 20: "1536m", 8123456789: "7.5g", 3000000000: "2.7g", 2 << 40: "2t", 5 << 10: "5k"} {
		require.Equal(t, want, bench.MemoryWords(bytes))
	}
}

func FuzzParseMemory(f *testing.F) {
	for _, s := range []string{"8", "8g", "8192m", "8 gb", "1TiB", "-1", "1e9", "9999999999999999999t", "8 gigabytes", "\x00", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := bench.ParseMemory(s)
		if err != nil {
			require.ErrorIs(t, err, bench.ErrInvalid)
			return
		}
		require.Positive(t, n)
		require.LessOrEqual(t, n, bench.MaxMemory)
		// However it is written, it is the same amount.
		for _, same := range []string{bench.MemoryText(n), strings.ToUpper(s), strings.ToLower(s), " " + s + "\t"} {
			again, err := bench.ParseMemory(same)
			require.NoError(t, err, same)
			require.Equal(t, n, again, same)
		}
	})
}

func TestParseSizedType(t *testing.T) {
	t.Parallel()
	const gib = int64(1) << 30
	for text, want := range map[string]bench.SizedType{
		"hw": {Type: "hw"}, "vm-2p8g": {Type: "vm", CPUs: 2, MemoryBytes: 8 * gib}, "dc-8g": {Type: "dc", MemoryBytes: 8 * gib}, "VM-16P": {Type: "vm", CPUs: 16},
	} {
		got, err := bench.ParseSizedType(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "vm-", "pc", "vm-8m", "vm-0p", "dc-0g", "vm2p8g", "vm-8g2p", "taishan200-2280-2s64p-256g"} {
		_, err := bench.ParseSizedType(text)
		require.ErrorIs(t, err, bench.ErrInvalid, text)
	}
}

func TestConstraintSpec(t *testing.T) {
	t.Parallel()
	const gib = int64(1) << 30
	// The largest of all that is said counts.
	c, err := bench.ConstraintSpec{Type: "vm-2p8g", Memory: "16384m", CPUs: 1, Machines: []string{"b", "a", "b"}}.Read()
	require.NoError(t, err)
	require.Equal(t, bench.Constraints{Type: "vm", MemoryBytes: 16 * gib, CPUs: 2, Machines: []string{"a", "b"}}, c)
	again, err := c.Spec().Read()
	require.NoError(t, err)
	require.Equal(t, c, again)
	require.True(t, bench.ConstraintSpec{}.IsZero())

	for _, bad := range []bench.ConstraintSpec{
		{Memory: "-1"}, {CPUs: -1}, {Type: "pc"}, {Machines: []string{"A b"}}, {Groups: []string{""}}, {Devices: []string{"/dev/x"}},
		{Labels: map[string]string{"X": "1"}}, {Labels: map[string]string{"x": "\n"}}, {CacheDirs: []string{"../etc"}}, {CacheDirs: []string{"a/b/c"}}, {CacheDirs: []string{"/a"}},
	} {
		_, err := bad.Read()
		require.ErrorIs(t, err, bench.ErrInvalid, "%+v", bad)
	}

	both, err := bench.Constraints{Machines: []string{"a", "b"}, Labels: map[string]string{"x": "1"}, CPUs: 2}.And(
		bench.Constraints{Machines: []string{"b", "c"}, Labels: map[string]string{"y": "2"}, Type: "hw", Devices: []string{"d"}})
	require.NoError(t, err)
	require.Equal(t, bench.Constraints{Machines: []string{"b"}, Labels: map[string]string{"x": "1", "y": "2"}, CPUs: 2, Type: "hw", Devices: []string{"d"}}, both)
	for _, other := range []bench.Constraints{{Machines: []string{"c"}}, {Type: "vm"}, {Labels: map[string]string{"x": "2"}}, {Groups: []string{"h"}}} {
		_, err := bench.Constraints{Machines: []string{"a"}, Type: "hw", Labels: map[string]string{"x": "1"}, Groups: []string{"g"}}.And(other)
		require.ErrorContains(t, err, "exclude each other")
	}
}

func TestPlace(t *testing.T) {
	t.Parallel()
	pool := bench.Pool{Target: "x86_64-unknown-linux-gnu", SizeClass: 4, Name: "main"}
	require.Equal(t, pool.TaskQueue(), bench.Place{Pool: pool}.TaskQueue())
	set := bench.Place{Pool: pool, Set: []string{"b", "a"}}
	require.Regexp(t, `^bench/x86_64-unknown-linux-gnu/4/set-[a-z2-7]{16}$`, set.TaskQueue())
	other := pool
	other.Name = "other"
	require.Equal(t, set.TaskQueue(), bench.Place{Pool: other, Set: []string{"a", "b"}}.TaskQueue(), "who they are, whatever their pool")
	require.NotEqual(t, set.TaskQueue(), bench.Place{Pool: pool, Set: []string{"ab"}}.TaskQueue())
	require.True(t, bench.IsSet(set.TaskQueue()))
	require.False(t, bench.IsSet(pool.TaskQueue()))
	_, err := bench.NewPool(pool.Target, 4, set.TaskQueue()[len("bench/x86_64-unknown-linux-gnu/4/"):])
	require.ErrorContains(t, err, "sets of collectors")

	for text, ok := range map[string]bool{"": true, "never": true, "10s": true, "1ms": false, "25h": false, "soon": false} {
		err := bench.ProjectConfig{AffinityWait: text}.Check()
		require.Equal(t, ok, err == nil, text)
	}
	require.Zero(t, bench.ProjectConfig{AffinityWait: "never"}.Affinity())
	require.Equal(t, bench.AffinityWait, bench.ProjectConfig{}.Affinity())
	require.ErrorContains(t, bench.ProjectConfig{Constraints: bench.ConstraintSpec{Memory: "8x"}}.Check(), "constraints: ")
}
