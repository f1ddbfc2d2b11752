package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/activities/collection"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/cli"
)

// redeliverFlags are the flags of the command that delivers blocks again.
type redeliverFlags struct {
	stateDir, api, tokenFile, output string
	all, list                        bool
	transport                        transportFlags
}

func newCollectorRedeliver() *cobra.Command {
	var f redeliverFlags
	cmd := &cobra.Command{
		Use:   "redeliver [FILE...]",
		Short: "Redeliver results that the API refused",
		Long: `Redelivers blocks of results that a collector has set aside in its spool because the
API refused them, and prints the outcome of each: accepted; superseded, because there are
results already; or refused again, with the reason. A refused block stays. The
collector may run meanwhile. Run it on the collector's machine, as its user.

For a slot of a shared host, name its state directory: --state-dir DIR/slots/SLOT.
For a collector of 'benchloom up', name .benchloom/collectors/NAME.`,
		Example: `  benchloom collector redeliver --list
  benchloom collector redeliver --all
  benchloom collector redeliver --state-dir .benchloom/collectors/local-1 --all -o json`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.stateDir, "state-dir", env("BENCHLOOM_COLLECTOR_DIR", defaultCollectorDir), "state directory of the collector")
	flags.StringVar(&f.api, "api", "", "address of the API (default: that of the enrolment, else $BENCHLOOM_URL, else "+defaultAPI+")")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the collector's token (default: that of the state directory, else $BENCHLOOM_TOKEN)")
	f.transport.add(flags)
	flags.BoolVar(&f.all, "all", false, "deliver all blocks that were set aside")
	flags.BoolVar(&f.list, "list", false, "list the blocks in the spool and deliver none")
	outputFlag(cmd, &f.output, formatTable, formatJSON)
	return cmd
}

func (f *redeliverFlags) run(cmd *cobra.Command, names []string) error {
	if f.list && (f.all || len(names) > 0) || f.all && len(names) > 0 {
		return usage(errors.New("--list, --all and names of files exclude each other"))
	}
	if !f.list && !f.all && len(names) == 0 {
		return usage(errors.New("name the files to deliver, or use --all; --list shows them"))
	}
	dir := filepath.Join(f.stateDir, spoolDir)
	files, err := collection.SpoolFiles(dir)
	if err != nil {
		return err
	}
	if f.list {
		return show(cmd, f.output, files, spoolTable)
	}
	files, err = collection.Chosen(files, names)
	if err != nil {
		return usage(err)
	}
	api, err := f.connect()
	if err != nil {
		return err
	}
	results := make([]collection.Redelivery, len(files))
	failed := 0
	for i, file := range files {
		if results[i], err = collection.Redeliver(cmd.Context(), api, dir, file); err != nil {
			return err
		}
		if results[i].Outcome == collection.Refused || results[i].Outcome == collection.Undelivered {
			failed++
		}
	}
	if err := show(cmd, f.output, results, redeliveryTable); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d blocks were not delivered and stay in %s", failed, len(files), dir)
	}
	return nil
}

// connect returns a client with the collector's token.
func (f *redeliverFlags) connect() (*apiclient.Client, error) {
	address, tokenFile := f.api, f.tokenFile
	for _, dir := range f.homes() {
		e, err := readEnrolment(dir)
		if err != nil {
			return nil, err
		}
		if e != nil {
			f.transport.take(e)
		}
		if e != nil && address == "" {
			address = e.API
		}
		if tokenFile == "" {
			if tokenFile, err = ownToken(dir); err != nil {
				return nil, err
			}
		}
	}
	if address == "" {
		address = env("BENCHLOOM_URL", defaultAPI)
	}
	token, err := secret(tokenFile, "BENCHLOOM_TOKEN")
	if err != nil {
		return nil, err
	}
	return f.transport.client(address, token)
}

// homes returns the directories that may hold the collector's enrolment and token: its
// state directory and, for a slot, that of its shared host.
func (f *redeliverFlags) homes() []string {
	dirs := []string{f.stateDir}
	if parent := filepath.Dir(filepath.Clean(f.stateDir)); filepath.Base(parent) == slotsDir {
		dirs = append(dirs, filepath.Dir(parent))
	}
	return dirs
}

// ownToken returns the file of a collector's own token: that of an enrolled one, or
// token-NAME. Without one, it is empty.
func ownToken(dir string) (string, error) {
	enrolled := filepath.Join(dir, ownTokenFile)
	if _, err := os.Stat(enrolled); err == nil {
		return enrolled, nil
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("looking for the collector's token: %w", err)
	}
	var found []string
	for _, n := range names {
		if strings.HasPrefix(n.Name(), ownTokenFile+"-") {
			found = append(found, filepath.Join(dir, n.Name()))
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s holds the tokens of %d collectors; choose one with --token-file", dir, len(found))
}

func spoolTable(w io.Writer, files []collection.SpoolFile, v cli.View) error {
	if len(files) == 0 {
		_, err := fmt.Fprintln(w, "The spool is empty: everything was delivered.")
		return err
	}
	t := cli.NewTable(cli.Column{Heading: "file"}, cli.Column{Heading: "size", Right: true}, cli.Column{Heading: "written"}, cli.Column{Heading: "state"}, cli.Column{Heading: "reason", Flex: true})
	for _, f := range files {
		state := "waits for delivery"
		if f.SetAside {
			state = "set aside"
		}
		t.Row(f.File, humanize.Bytes(uint64(max(0, f.Bytes))), cli.Ago(v.Now, f.At), state, f.Reason)
	}
	return t.Write(w, v.Width)
}

func redeliveryTable(w io.Writer, results []collection.Redelivery, v cli.View) error {
	if len(results) == 0 {
		_, err := fmt.Fprintln(w, "No block was set aside.")
		return err
	}
	t := cli.NewTable(cli.Column{Heading: "file"}, cli.Column{Heading: "outcome"}, cli.Column{Heading: "accepted", Right: true}, cli.Column{Heading: "superseded", Right: true}, cli.Column{Heading: "reason", Flex: true})
	for _, r := range results {
		t.Row(r.File, r.Outcome, strconv.Itoa(r.Accepted), strconv.Itoa(r.Superseded), r.Reason)
	}
	return t.Write(w, v.Width)
}
