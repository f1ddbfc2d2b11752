package suite_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/suite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden reports whether tests should rewrite their expected output. The flag
// is declared beside the schema's test.
func golden() bool { return flag.Lookup("update").Value.String() == "true" }

// load loads a suite from its text and names of other files.
func load(t *testing.T, document string, files ...string) *suite.Suite {
	t.Helper()
	s, err := loadText(document, files...)
	require.NoError(t, err)
	return s
}

func loadText(document string, files ...string) (*suite.Suite, error) {
	fsys := fstest.MapFS{suite.FileName: {Data: []byte(document)}}
	for _, name := range files {
		fsys[name] = &fstest.MapFile{Data: []byte("x")}
	}
	return suite.Load(fsys)
}

// list returns "a0: {}, a1: {}, …".
func list(prefix string, n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf("%s%d: {}", prefix, i)
	}
	return strings.Join(items, ", ")
}
