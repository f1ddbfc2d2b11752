package artifact_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/artifact"
)

// Each line of the input is one member of an archive: a letter for its type, its name and, for links, a target. Whatever the
// outcome, nothing outside the directory appears or changes, and no link leads there.
func FuzzUnpack(f *testing.F) {
	f.Add("d a\nf a/b\nl a/c b\nh d a/b")
	f.Add("l a ..\nf a/evil")
	f.Add("f d/e/x\nl s d/e\nl a s/../../evil")
	f.Add("l d/top ..\nl d/a top/../evil")
	f.Add("l here .\nl here/up ../evil\nf here/up")
	f.Add("f d/x\nl d/up ../d\nh up d/up\nf up/evil\nf d")
	f.Fuzz(func(t *testing.T, lines string) {
		var members []member
		for line := range strings.Lines(lines) {
			fields := strings.Fields(strings.ToValidUTF8(line, ""))
			if len(fields) < 2 || strings.ContainsRune(line, 0) {
				continue
			}
			// The writers treat a name that ends in "/" as a directory and refuse content.
			m := member{name: strings.TrimRight(fields[1], "/"), mode: 0o644}
			link := strings.Join(fields[2:], " ")
			switch fields[0] {
			case "d":
				m.mode = fs.ModeDir | 0o755
			case "l":
				m.mode, m.link = fs.ModeSymlink|0o777, link
			case "h":
				m.link, m.hardLink = link, true
			default:
				m.content = "x"
			}
			members = append(members, m)
		}
		tarred, err := encodeTar(members)
		if err != nil {
			t.Skip(err)
		}
		top, err := filepath.EvalSymlinks(t.TempDir())
		require.NoError(t, err)
		dir := filepath.Join(top, "up", "here")
		require.NoError(t, os.MkdirAll(dir, 0o755))
		for _, archive := range [][]byte{tarred, zipOf(t, members)} {
			_ = artifact.UnpackTo(context.Background(), archive, dir)
			err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
				require.NoError(t, err)
				if path != top && path != filepath.Dir(dir) {
					require.True(t, path == dir || strings.HasPrefix(path, dir+string(filepath.Separator)), path)
				}
				if d.Type()&fs.ModeSymlink != 0 {
					if leadsTo, err := filepath.EvalSymlinks(path); err == nil {
						require.True(t, leadsTo == dir || strings.HasPrefix(leadsTo, dir+string(filepath.Separator)), "%s leads to %s", path, leadsTo)
					}
				}
				return nil
			})
			require.NoError(t, err)
		}
	})
}
