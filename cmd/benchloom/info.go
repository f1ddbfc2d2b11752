package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/up"
)

// whereabouts holds addresses, paths and the API's description of itself.
type whereabouts struct {
	API  string         `json:"api"`
	Info apiclient.Info `json:"info"`
	// StateDir and Stack describe the stack that runs on the state directory, if
	// any.
	StateDir string       `json:"state_dir,omitempty"`
	Stack    *devstack.Up `json:"stack,omitempty"`
}

func newInfo() *cobra.Command {
	var f serviceFlags
	var here bool
	var output string
	cmd := &cobra.Command{
		Use:     "info",
		GroupID: groupUse,
		Short:   "Show the service's addresses, version and directories",
		Long: `Shows the addresses of the API and of Temporal's Web UI, the version, the owner of
the token in use, and where the stack on this machine keeps its state and logs.

--here considers only the stack that runs on the state directory; if there is none,
the exit code is 5.`,
		Example: `  benchloom info
  benchloom info --here --state-dir /var/lib/benchloom`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			where, err := f.whereabouts(here)
			if err != nil {
				return err
			}
			if here {
				f.api = where.Stack.Addresses[up.AddressAPI]
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			where.API = api.BaseURL()
			if where.Info, err = api.Info(cmd.Context()); err != nil {
				return reached(err)
			}
			return show(cmd, output, where, writeWhereabouts)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&here, "here", false, "only the stack of the state directory")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

func (f *serviceFlags) whereabouts(needed bool) (whereabouts, error) {
	running, err := devstack.ReadUp(f.stateDir)
	switch {
	case errors.Is(err, devstack.ErrNotRunning) && !needed:
		return whereabouts{}, nil
	case errors.Is(err, devstack.ErrNotRunning):
		return whereabouts{}, &exitError{exitUnreached, fmt.Errorf("%w; start it with 'benchloom up'", err)}
	case err != nil:
		return whereabouts{}, err
	}
	dir, err := filepath.Abs(f.stateDir)
	if err != nil {
		return whereabouts{}, fmt.Errorf("finding the state directory: %w", err)
	}
	return whereabouts{StateDir: dir, Stack: &running}, nil
}

func writeWhereabouts(w io.Writer, where whereabouts, v cli.View) error {
	principal := "anonymous: no token was found"
	if where.Info.Principal != "" {
		principal = fmt.Sprintf("%s (%s)", where.Info.Principal, where.Info.Role)
		if where.Info.Project != "" {
			principal = fmt.Sprintf("%s (%s of project %s)", where.Info.Principal, where.Info.Role, where.Info.Project)
		}
	}
	ui := ""
	if where.Info.TemporalUI != "" {
		ui = fmt.Sprintf("%s/namespaces/%s/workflows", where.Info.TemporalUI, where.Info.Namespace)
	}
	pairs := [][2]string{
		{"API", where.API}, {"OpenAPI", where.API + "/openapi.json"}, {"version", where.Info.Version}, {"you are", principal},
		{"Temporal UI", ui}, {"namespace", where.Info.Namespace},
	}
	if where.Stack != nil {
		pairs = append(pairs, [2]string{"state", where.StateDir}, [2]string{"logs", filepath.Join(where.StateDir, "logs")},
			[2]string{"started", cli.Ago(v.Now, where.Stack.StartedAt)})
		for _, name := range slices.Sorted(maps.Keys(where.Stack.Processes)) {
			pairs = append(pairs, [2]string{"process " + name, strconv.Itoa(where.Stack.Processes[name])})
		}
	}
	if _, err := fmt.Fprintln(w, "Benchloom"); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return cli.Fields(w, pairs...)
}

// build describes this binary.
type build struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "version",
		GroupID: groupLocal,
		Short:   "Print the version",
		Example: `  benchloom version -o json`,
		Args:    exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := build{Version: version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
			return show(cmd, output, b, func(w io.Writer, b build, _ cli.View) error {
				_, err := fmt.Fprintf(w, "benchloom %s (%s, %s)\n", b.Version, b.Go, b.System)
				return err
			})
		},
	}
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}
