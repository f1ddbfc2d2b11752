package plan_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A job's identity and its requirements towards collectors are each filled in by one
// function of this package: two places would come to disagree.
func TestIdentityAndRequirementsAreBuiltInOnePlace(t *testing.T) {
	t.Parallel()
	found := make(map[string][]string)
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok || len(literal.Elts) == 0 {
				return true
			}
			name := ""
			switch of := literal.Type.(type) {
			case *ast.Ident:
				name = file.Name.Name + "." + of.Name
			case *ast.SelectorExpr:
				if from, ok := of.X.(*ast.Ident); ok {
					name = from.Name + "." + of.Sel.Name
				}
			}
			if name == "bench.JobIdentity" || name == "placement.Requirements" {
				found[name] = append(found[name], filepath.ToSlash(path))
			}
			return true
		})
		return nil
	}))
	require.Equal(t, map[string][]string{
		"bench.JobIdentity":      {"../../internal/plan/identity.go"},
		"placement.Requirements": {"../../internal/plan/requirements.go"},
	}, found)
}
