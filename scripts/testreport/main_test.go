package main

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	good = `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Elapsed":1.5}
`
	skipping = `{"Action":"start","Package":"q"}
{"Action":"pass","Package":"q","Test":"TestA"}
{"Action":"skip","Package":"q","Test":"TestB"}
{"Action":"pass","Package":"q"}
`
)

func TestReport(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		inputs []string
		skips  string // the list
		part   string // default: all
		failed string // the tests to repeat
		ok     bool
		want   []string // in the report
	}{
		"all is well": {inputs: []string{good}, ok: true, want: []string{"ok    p  1.5s\n", "1 passed, 0 failed, 0 skipped\n"}},
		"two runs":    {inputs: []string{good, skipping}, skips: "q TestB # why", ok: true, want: []string{"2 passed, 0 failed, 1 skipped\n"}},
		"slow tests": {
			inputs: []string{`{"Action":"pass","Package":"p","Test":"TestA","Elapsed":31.2}
{"Action":"pass","Package":"p","Test":"TestB/c","Elapsed":90}
{"Action":"pass","Package":"p","Test":"TestB","Elapsed":95}
{"Action":"pass","Package":"p","Test":"TestC","Elapsed":29}
`},
			ok: true, want: []string{"slow  p TestB  95.0s\nslow  p TestA  31.2s\n4 passed"},
		},
		"not listed":         {inputs: []string{skipping}, want: []string{"SKIPPED but not listed", "q TestB"}},
		"listed and not run": {inputs: []string{good}, skips: "# nothing\np TestA", want: []string{"but not skipped: p TestA"}},
		"not of this part":   {inputs: []string{good, skipping}, skips: "q TestB\nq TestLongB", part: partQuick, ok: true},
		"of this part":       {inputs: []string{good}, skips: "q TestB\nq TestLongB", part: partLong, want: []string{"but not skipped: q TestLongB"}},
		"a failure": {
			inputs: []string{`{"Action":"output","Package":"p","Test":"TestA","Output":"why\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p"}
`, good},
			want:   []string{"FAIL  p TestA\nwhy\n", "2 passed, 1 failed, 0 skipped\n"},
			failed: "p TestA\n",
		},
		"a part of a test fails": {
			inputs: []string{good + `{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"run","Package":"p","Test":"TestB/c"}
{"Action":"fail","Package":"p","Test":"TestB/c"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p"}
`},
			want:   []string{"1 passed, 2 failed, 0 skipped\n"},
			failed: "p TestB\n",
		},
		"a package fails after its tests": {
			inputs: []string{good + `{"Action":"fail","Package":"q","Test":"TestA"}
{"Action":"fail","Package":"q"}
{"Action":"pass","Package":"r","Test":"TestA"}
{"Action":"fail","Package":"r"}
`},
			want: []string{"FAIL  q TestA\n", "FAIL  r\n"},
		},
		"a race": {
			inputs: []string{good + `{"Action":"output","Package":"q","Test":"TestA","Output":"WARNING: DATA RACE\n"}
{"Action":"fail","Package":"q","Test":"TestA"}
{"Action":"fail","Package":"q"}
`},
			want: []string{"DATA RACE"},
		},
		"a test ends its package": {
			inputs: []string{good + `{"Action":"run","Package":"q","Test":"TestB"}
{"Action":"run","Package":"q","Test":"TestA"}
{"Action":"fail","Package":"q","Test":"TestA"}
{"Action":"fail","Package":"q"}
`},
			want: []string{"FAIL  q TestB has not ended\n"},
		},
		"does not build": {
			inputs: []string{good + `{"Action":"build-output","ImportPath":"q","Output":"undefined: x\n"}
{"Action":"build-fail","ImportPath":"q"}
`},
			want: []string{"FAIL  q\nundefined: x\n"},
		},
		"breaks off": {
			inputs: []string{`{"Action":"start","Package":"p"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"panic: oh\n"}
`},
			want: []string{"died  p TestB\npanic: oh\n", "FAIL  p has not ended\n"},
		},
		"waits for ever": {
			inputs: []string{good + `{"Action":"start","Package":"q"}
{"Action":"run","Package":"q","Test":"TestA"}
{"Action":"run","Package":"q","Test":"TestB"}
{"Action":"pass","Package":"q","Test":"TestB"}
{"Action":"fail","Package":"q"}
`},
			want: []string{"FAIL  q TestA has not ended\n", "2 passed, 0 failed, 0 skipped\n"},
		},
		"runs nothing": {inputs: []string{good, "flag provided but not defined\n"}, want: []string{"flag provided but not defined\n", "no test passed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			skips := filepath.Join(t.TempDir(), "skips.txt")
			require.NoError(t, os.WriteFile(skips, []byte(c.skips), 0o644))
			var inputs []io.Reader
			for _, text := range c.inputs {
				inputs = append(inputs, strings.NewReader(text))
			}
			var out strings.Builder
			s, ok, err := report(inputs, &out, skips, cmp.Or(c.part, partAll))
			require.NoError(t, err)
			failed := filepath.Join(t.TempDir(), "failed.txt")
			require.NoError(t, s.writeFailed(failed))
			text, err := os.ReadFile(failed)
			require.NoError(t, err)
			require.Equal(t, c.failed, string(text))
			require.Equal(t, c.ok, ok, out.String())
			for _, want := range c.want {
				require.Contains(t, out.String(), want)
			}
		})
	}
}
