package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/accounts"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/tune"
)

func newCollectorCheck() *cobra.Command {
	var cpus, output string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Show which limits of benchmarks this machine enforces",
		Long: `Shows which limits of benchmarks hold on this machine for collectors of this user,
and which do not, with reason and remedy. Run it as the user that the collector runs
as, in the same container or service. Collectors report the same with each result.
Nothing is changed.`,
		Example: `  benchloom collector check
  sudo benchloom collector check --cpus 2-3 -o json`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := measure.ParseCPUList(cpus)
			if err != nil {
				return usage(fmt.Errorf("--cpus: %w", err))
			}
			limits, err := checkLimits(list)
			if err != nil {
				return err
			}
			return show(cmd, output, checkedLimits{limits}, writeChecked)
		},
	}
	cmd.Flags().StringVar(&cpus, "cpus", "", "CPUs for benchmarks, such as 2-5,8 (default: all)")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// checkedLimits lists the limits of benchmarks.
type checkedLimits struct {
	Limits []tune.Enforcement `json:"limits"`
}

// checkLimits opens a sandbox with all limits, as a collector of this user would, and closes it.
func checkLimits(cpus measure.CPUList) (_ []tune.Enforcement, err error) {
	dir, err := os.MkdirTemp("", "benchloom-check-")
	if err != nil {
		return nil, fmt.Errorf("creating a directory to check in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	config := measure.SandboxConfig{
		Name: "check", WorkDir: filepath.Join(dir, "work"), CPUs: cpus, MemoryBytes: 1 << 30, DiskBytes: 1 << 30, Inodes: 1 << 20, PIDs: 1000, OpenFiles: 1000,
	}
	var more []measure.Unenforced
	if os.Geteuid() == 0 {
		switch err := accounts.Switchable(); {
		case err != nil:
			more = append(more, measure.Unenforced{Name: measure.LimitAccount, Reason: err.Error()})
		default:
			all, err := accounts.System().All()
			if err != nil {
				return nil, err
			}
			if len(all) > 0 {
				config.User = &measure.User{UID: all[0].UID, GID: all[0].GID}
			}
		}
	}
	sandbox, err := measure.NewSandbox(config)
	if err != nil {
		return nil, err
	}
	return tune.Limits(append(more, sandbox.Unenforced()...)), sandbox.Close()
}

func writeChecked(w io.Writer, c checkedLimits, v cli.View) error {
	t := cli.NewTable(cli.Column{Heading: "limit"}, cli.Column{Heading: "state"}, cli.Column{Heading: "purpose", Flex: true})
	lacking := 0
	for _, e := range c.Limits {
		state := "holds"
		if !e.Enforced {
			state, lacking = "not enforced", lacking+1
		}
		t.Row(string(e.Limit), state, e.Purpose)
	}
	if err := t.Write(w, v.Width); err != nil {
		return err
	}
	if lacking == 0 {
		_, err := fmt.Fprintln(w, "\nAll limits of benchmarks hold on this machine.")
		return err
	}
	if _, err := fmt.Fprintf(w, "\n%s not enforced on this machine:\n", cli.Plural(lacking, "limit")); err != nil {
		return err
	}
	for _, e := range c.Limits {
		if e.Enforced {
			continue
		}
		if _, err := fmt.Fprintf(w, "  %s: %s. Remedy: %s.\n", e.Limit, cli.Printable(e.Reason), e.Remedy); err != nil {
			return err
		}
	}
	return nil
}
