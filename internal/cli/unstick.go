package cli

import (
	"io"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// Unstuck writes what a request waits for and which repairs were made.
func Unstuck(w io.Writer, u apiclient.Unstuck, v View) error {
	if err := write(w, "request "+string(u.Request.ID)+" ("+Printable(Subject(u.Request))+"): "+Standing(u.Request)+"\n"); err != nil {
		return err
	}
	for _, f := range u.Findings {
		mark := "  waits  "
		if f.Stuck {
			mark = "  stuck  "
		}
		text := "\n" + mark + Printable(f.Subject) + "\n         " + Printable(f.What) + "\n"
		if f.Since != nil {
			text += "         since " + Ago(v.Now, *f.Since) + "\n"
		}
		if f.Remedy != "" {
			text += "         remedy: " + Printable(f.Remedy) + "\n"
		}
		switch {
		case f.Repaired:
			text += "         done: " + f.Repair + "\n"
		case f.RepairError != "":
			text += "         could not " + f.Repair + ": " + Printable(f.RepairError) + "\n"
		case f.Repair == "reset":
			text += "         with --force: reset to its first decision; it then reads the record again\n"
		case f.Repair != "":
			text += "         without --dry-run: " + f.Repair + "\n"
		}
		if err := write(w, text); err != nil {
			return err
		}
	}
	return nil
}
