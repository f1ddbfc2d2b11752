package cli

import (
	"io"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// CodeProfiles writes a table of stored profiles.
func CodeProfiles(w io.Writer, list apiclient.CodeProfileList, v View) error {
	if len(list.Profiles) == 0 {
		return write(w, "No profiles are stored. 'benchloom profile PROJECT TAG TESTCASE --with PROFILER' asks for one.\n")
	}
	t := NewTable(Column{Heading: "profile"}, Column{Heading: "artifact"}, Column{Heading: "test case", Flex: true}, Column{Heading: "profiler"}, Column{Heading: "size", Right: true}, Column{Heading: "made"})
	for _, p := range list.Profiles {
		t.Row(string(p.ID), p.Tag, p.TestCase.String(), p.Profiler, humanize.IBytes(uint64(max(0, p.RawSize))), p.CreatedAt.UTC().Format(time.DateTime))
	}
	return t.Write(w, v.Width)
}

// CodeProfileCSV writes a heading and a line for each profile.
func CodeProfileCSV(w io.Writer, list []apiclient.CodeProfile) error {
	rows := [][]string{{"id", "project", "tag", "benchmark", "profile", "scenario", "backend", "target", "profiler", "format", "raw_size", "request", "job", "run", "created_at"}}
	for _, p := range list {
		rows = append(rows, []string{
			string(p.ID), p.Project, p.Tag, p.Benchmark, p.Profile, p.Scenario, p.Backend, string(p.Target), p.Profiler, p.Format,
			strconv.FormatInt(p.RawSize, 10), string(p.Request), string(p.Job), string(p.Run), p.CreatedAt.UTC().Format(time.RFC3339),
		})
	}
	return writeCSV(w, rows)
}
