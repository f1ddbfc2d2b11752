package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// Retention writes how long everything is kept.
func Retention(w io.Writer, list apiclient.RetentionList, v View) error {
	if len(list.Kinds) == 0 {
		return write(w, "the orchestrator has not removed anything yet: its first pass is within an hour of its first start\n")
	}
	t := NewTable(Column{Heading: "kind"}, Column{Heading: "kept for", Right: true}, Column{Heading: "due", Right: true}, Column{Heading: "size", Right: true},
		Column{Heading: "removed", Right: true}, Column{Heading: "size", Right: true}, Column{Heading: "projects", Flex: true})
	for _, k := range list.Kinds {
		var own []string
		for _, project := range slices.Sorted(maps.Keys(k.Projects)) {
			own = append(own, fmt.Sprintf("%s: %s", project, k.Projects[project]))
		}
		t.Row(string(k.Kind), k.Keep, strconv.FormatInt(k.Due.Rows, 10), bytesText(k.Due), strconv.FormatInt(k.Removed.Rows, 10), bytesText(k.Removed), strings.Join(own, ", "))
	}
	return t.Write(w, v.Width)
}

func bytesText(a apiclient.Amount) string {
	if a.Rows == 0 {
		return ""
	}
	return humanize.IBytes(uint64(max(0, a.Bytes)))
}
