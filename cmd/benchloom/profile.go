package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/flame"
)

// Forms in which a profile is written, beside those of tables.
const (
	formatHTML       = "html"
	formatPprof      = "pprof"
	formatFolded     = "folded"
	formatSpeedscope = "speedscope"
)

func newProfile() *cobra.Command {
	var asked askedProfile
	cmd := &cobra.Command{
		Use:     "profile PROJECT TAG TESTCASE --with PROFILER",
		GroupID: groupUse,
		Short:   "Profile a benchmark; show, compare and draw profiles",
		Long: `Runs one test case of an artifact under a profiler of its suite, where that is
installed, and stores the profile. TESTCASE is
BENCHMARK[/PROFILE[/SCENARIO[/BACKEND[/TARGET]]]]; what the suite has only one of may be
left out. With --vs, another artifact is profiled as well. A profile explains a
measurement and is none: nothing of it enters results. --wait shows progress until the
profiles are made; the exit code is 4 if they are not.

The other commands read stored profiles by their ID, or files of profilers: pprof, text of 'perf script', callgrind, cachegrind,
DHAT, samply, rustc's -Zself-profile and folded stacks. The format is guessed from the content unless
--format names it. '-' stands for standard input.`,
		Example: `  benchloom profile go 1.26.0 gin/build/full --with pprof-cpu --vs 1.25.0 --wait
  benchloom profile top cpu.pprof
  benchloom profile diff before.pprof after.pprof
  perf script | benchloom profile convert - -o html >flames.html`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return asked.run(cmd, args)
		},
	}
	cmd.AddCommand(newProfileList(), newProfileGet(), newProfileTop(), newProfileDiff(), newProfileConvert())
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return exactArgs(3)(cmd, args)
	}
	asked.add(cmd)
	return cmd
}

// profileFlags choose how files of profiles are read.
type profileFlags struct {
	serviceFlags
	format, sampleType string
}

func (f *profileFlags) add(cmd *cobra.Command) {
	f.serviceFlags.add(cmd.Flags())
	valid := []string{""}
	for _, known := range flame.Formats() {
		valid = append(valid, string(known))
	}
	format := &choice{value: &f.format, valid: valid}
	cmd.Flags().Var(format, "format", "format of the files: "+strings.Join(valid[1:], ", ")+" (default: guessed from the content)")
	format.complete(cmd, "format")
	cmd.Flags().StringVar(&f.sampleType, "type", "", "sample type, such as cpu, alloc_space or Ir (default: that of the profile)")
}

// read reads a file, a stored profile by its ID, or standard input for "-".
func (f *profileFlags) read(cmd *cobra.Command, name string) (*profile.Profile, error) {
	in := cmd.InOrStdin()
	stored, err := f.stored(cmd.Context(), name)
	switch {
	case err != nil:
		return nil, err
	case stored != nil:
		in = stored
	case name != "-":
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("reading a profile: %w", err)
		}
		defer file.Close()
		in = file
	}
	format := flame.Format(f.format)
	if format == "" {
		head := make([]byte, 8<<10)
		n, err := io.ReadFull(in, head)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		format, in = flame.Detect(head[:n]), io.MultiReader(bytes.NewReader(head[:n]), in)
	}
	p, err := flame.Parse(format, in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if f.sampleType != "" && !slices.Contains(flame.Types(p), f.sampleType) {
		return nil, usage(fmt.Errorf("%s has no samples of type %q; use %s", name, f.sampleType, strings.Join(flame.Types(p), ", ")))
	}
	return p, nil
}

// mostFlag adds the bound of a table.
func mostFlag(cmd *cobra.Command, into *int) {
	cmd.Flags().IntVarP(into, "number", "n", 30, "functions in the table; 0: all")
}

func newProfileTop() *cobra.Command {
	var f profileFlags
	var most int
	var output string
	cmd := &cobra.Command{
		Use:   "top FILE|ID",
		Short: "List the functions of a profile with their shares",
		Long: `Lists the functions of a profile, those with the largest own value first. "With
callees" includes what a function called.`,
		Example: `  benchloom profile top cpu.pprof
  benchloom profile top callgrind.out.4711 -n 10
  benchloom profile top heap.pprof --type alloc_space -o json`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if most < 0 {
				return usage(fmt.Errorf("-n %d: use a positive number, or 0 for all functions", most))
			}
			p, err := f.read(cmd, args[0])
			if err != nil {
				return err
			}
			table, err := flame.Top(p, f.sampleType)
			if err != nil {
				return err
			}
			if output == formatCSV {
				return cli.FunctionCSV(visible(cmd.OutOrStdout()), table)
			}
			return show(cmd, output, table, func(w io.Writer, t flame.Table, v cli.View) error { return cli.FunctionTable(w, t, most, v) })
		},
	}
	f.add(cmd)
	mostFlag(cmd, &most)
	outputFlag(cmd, &output, formatTable, formatJSON, formatCSV)
	return cmd
}

func newProfileDiff() *cobra.Command {
	var f profileFlags
	var most int
	var output string
	cmd := &cobra.Command{
		Use:   "diff FILE|ID FILE|ID",
		Short: "List the functions that differ most between two profiles",
		Long: `Compares two profiles of the same program, before and after a change, by the
shares of their functions in all samples: two profiles seldom have equally many. The
functions whose own share changed most come first. A profile explains a measurement
and is none: whether a program became slower is for 'benchloom compare' to tell.`,
		Example: `  benchloom profile diff before.pprof after.pprof
  benchloom profile diff before.pprof after.pprof -n 0 -o csv`,
		Args: exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if most < 0 {
				return usage(fmt.Errorf("-n %d: use a positive number, or 0 for all functions", most))
			}
			a, b, err := f.readTwo(cmd, args[0], args[1])
			if err != nil {
				return err
			}
			d, err := flame.Diff(a, b, f.sampleType)
			if err != nil {
				return err
			}
			if output == formatCSV {
				return cli.DifferenceCSV(visible(cmd.OutOrStdout()), d)
			}
			return show(cmd, output, d, func(w io.Writer, d flame.Difference, v cli.View) error { return cli.DifferenceTable(w, d, most, v) })
		},
	}
	f.add(cmd)
	mostFlag(cmd, &most)
	outputFlag(cmd, &output, formatTable, formatJSON, formatCSV)
	return cmd
}

func (f *profileFlags) readTwo(cmd *cobra.Command, before, after string) (a, b *profile.Profile, err error) {
	if before == "-" && after == "-" {
		return nil, nil, usage(errors.New("only one of the two profiles can come from standard input"))
	}
	if a, err = f.read(cmd, before); err != nil {
		return nil, nil, err
	}
	b, err = f.read(cmd, after)
	return a, b, err
}

func newProfileConvert() *cobra.Command {
	var f profileFlags
	var before, output string
	cmd := &cobra.Command{
		Use:   "convert FILE|ID",
		Short: "Write a profile as a flame graph or in another form",
		Long: `Writes a profile to standard output: as a page with a flame graph, which needs
nothing else (html), for 'go tool pprof' (pprof), as folded stacks (folded), or for
https://www.speedscope.app (speedscope). With --vs, the flame graph shows how it
differs from another profile: what takes a larger share is red, what takes a smaller
one is blue.`,
		Example: `  benchloom profile convert cpu.pprof >flames.html
  benchloom profile convert after.pprof --vs before.pprof >difference.html
  benchloom profile convert callgrind.out.4711 -o pprof >callgrind.pb.gz`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if before != "" && output != formatHTML {
				return usage(fmt.Errorf("--vs draws a difference, which -o %s cannot show; leave one of them out", output))
			}
			if before != "" {
				return f.drawDifference(cmd, before, args[0])
			}
			p, err := f.read(cmd, args[0])
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			switch output {
			case formatPprof:
				return p.Write(out)
			case formatFolded:
				return flame.WriteFolded(visible(out), p, f.sampleType)
			case formatSpeedscope:
				return flame.WriteSpeedscope(visible(out), p, filepath.Base(args[0]))
			}
			tree, err := flame.NewTree(p, f.sampleType)
			if err != nil {
				return err
			}
			return f.draw(cmd, tree, p, filepath.Base(args[0]), fmt.Sprintf("%s: %s.", tree.Type, flame.Amount(tree.Root.Total, tree.Unit)))
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&before, "vs", "", "profile to draw the difference from")
	outputFlag(cmd, &output, formatHTML, formatPprof, formatFolded, formatSpeedscope)
	return cmd
}

func (f *profileFlags) drawDifference(cmd *cobra.Command, before, after string) error {
	a, b, err := f.readTwo(cmd, before, after)
	if err != nil {
		return err
	}
	tree, err := flame.NewDifference(a, b, f.sampleType)
	if err != nil {
		return err
	}
	about := fmt.Sprintf("%s: %s before, %s after. What takes a larger share of all than before is red, what takes a smaller one is blue.",
		tree.Type, flame.Amount(tree.Root.BeforeTotal, tree.Unit), flame.Amount(tree.Root.Total, tree.Unit))
	return f.draw(cmd, tree, b, filepath.Base(after)+" compared with "+filepath.Base(before), about)
}

func (f *profileFlags) draw(cmd *cobra.Command, tree flame.Tree, p *profile.Profile, title, about string) error {
	table, err := flame.Top(p, f.sampleType)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(cmd.OutOrStdout(), flame.Page(flame.Drawing{ID: "flames", Title: title, Graph: tree.Lay("", flame.DrawnBoxes)}, about, table)); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}
