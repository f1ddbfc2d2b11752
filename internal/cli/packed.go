package cli

import (
	"fmt"
	"io"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// PackedCheck writes how packed results differ from the rows that they are derived from.
func PackedCheck(w io.Writer, c apiclient.PackedCheck, _ View) error {
	text := ""
	for _, d := range c.Differences {
		text += Printable(d) + "\n"
	}
	text += fmt.Sprintf("%s and %s of %s agree with the results", Plural(c.Sheets, "sheet"), Plural(c.Points, "point"), Plural(c.Artifacts-c.Stale, "artifact"))
	if c.Stale > 0 {
		text += fmt.Sprintf("; %s to be packed", Plural(c.Stale, "artifact"))
	}
	return write(w, text+"\n")
}
