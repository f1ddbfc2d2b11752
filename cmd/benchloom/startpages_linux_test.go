package main

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The program runs on, with fewer of its pages in memory.
func TestPagesOfTheStartAreForgotten(t *testing.T) {
	resident := func() int {
		status, err := os.ReadFile("/proc/self/status")
		require.NoError(t, err)
		found := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(status)
		if found == nil {
			t.Skip("this kernel does not tell which pages are of files")
		}
		kilobytes, err := strconv.Atoi(string(found[1]))
		require.NoError(t, err)
		return kilobytes
	}
	before := resident()
	require.NoError(t, forgetStart())
	require.Less(t, resident(), before)
}
