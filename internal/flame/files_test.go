package flame_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/flame"
)

func TestTheFilesOfAProfileAreAddedUp(t *testing.T) {
	t.Parallel()
	const one, two, none = "main;work 3\nmain 1\n", "main;work 4\nmain;rest 2\n", "\n"
	for name, c := range map[string]struct {
		files  []string
		work   int64
		refuse string
	}{
		"one":                    {files: []string{one}, work: 3},
		"several":                {files: []string{one, none, two}, work: 7},
		"one without samples":    {files: []string{none}, refuse: "it has no samples"},
		"all without samples":    {files: []string{none, none}, refuse: "it has no samples"},
		"one that is not a file": {files: []string{"x y z"}, refuse: "line 1"},
		"none among several":     {files: []string{one, "x y z"}, refuse: "file 2 of 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var files []io.Reader
			for _, text := range c.files {
				files = append(files, strings.NewReader(text))
			}
			p, err := flame.ParseFiles(flame.Folded, files)
			if c.refuse != "" {
				require.ErrorIs(t, err, flame.ErrNotAProfile)
				require.ErrorContains(t, err, c.refuse)
				return
			}
			require.NoError(t, err)
			var work int64
			for _, s := range p.Sample {
				if s.Location[0].Line[0].Function.Name == "work" {
					work += s.Value[0]
				}
			}
			require.Equal(t, c.work, work)
		})
	}
}

func TestATypeOfSamplesIsShownFirst(t *testing.T) {
	t.Parallel()
	p, err := flame.Parse(flame.Folded, strings.NewReader("main 1\n"))
	require.NoError(t, err)
	require.NoError(t, flame.ShowFirst(p, flame.Types(p)[0]))
	require.Equal(t, flame.Types(p)[0], p.DefaultSampleType)
	err = flame.ShowFirst(p, "inuse_space")
	require.ErrorIs(t, err, flame.ErrNotAProfile)
	require.ErrorContains(t, err, `no samples of type "inuse_space"`)
}
