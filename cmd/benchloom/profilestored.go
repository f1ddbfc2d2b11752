package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

// askedProfile says what is to be profiled.
type askedProfile struct {
	serviceFlags
	with, versus, reason string
	wait, quiet          bool
	output               string
}

func (f *askedProfile) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.serviceFlags.add(flags)
	flags.StringVar(&f.with, "with", "", "profiler of the suite, such as pprof-cpu, perf or callgrind (required)")
	flags.StringVar(&f.versus, "vs", "", "artifact to profile as well, to see what differs")
	flags.StringVar(&f.reason, "reason", "", "why, for the audit")
	flags.BoolVar(&f.wait, "wait", false, "wait until the profiles are made and show progress")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print only IDs: with --wait of the profiles, the one of --vs first; else of the request")
	outputFlag(cmd, &f.output, formatTable, formatJSON)
}

func (f *askedProfile) run(cmd *cobra.Command, args []string) error {
	wanted, err := f.request(args)
	if err != nil {
		return err
	}
	api, err := f.connect()
	if err != nil {
		return err
	}
	created, err := api.CreateRequest(cmd.Context(), wanted)
	if err != nil {
		return reached(err)
	}
	out := cmd.OutOrStdout()
	for _, w := range created.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", cli.Printable(w))
	}
	switch {
	case f.wait:
		return f.await(cmd, api, created)
	case f.quiet:
		_, err = fmt.Fprintln(out, created.ID)
	case f.output == formatJSON:
		err = cli.WriteJSON(out, created)
	default:
		_, err = fmt.Fprintf(out, "request %s: %s\nwatch it with 'benchloom status %s --watch'; its profiles: 'benchloom profile list %s --request %s'\n",
			created.ID, cli.Printable(cli.Subject(created)), created.ID, created.Project, created.ID)
	}
	return err
}

// request returns the request for profiles of a test case of an artifact.
func (f *askedProfile) request(args []string) (apiclient.NewRequest, error) {
	if f.with == "" {
		return apiclient.NewRequest{}, usage(errors.New("name a profiler of the suite: --with pprof-cpu, for example"))
	}
	if err := bench.CheckName("project", args[0]); err != nil {
		return apiclient.NewRequest{}, usage(err)
	}
	selection, err := oneTestCase(args[2])
	if err != nil {
		return apiclient.NewRequest{}, usage(err)
	}
	return apiclient.NewRequest{
		Project: args[0], Type: bench.AdHoc, Tag: args[1], Versus: f.versus, Profiler: f.with, Selection: selection, Reason: f.reason,
	}, nil
}

// oneTestCase parses BENCHMARK[/PROFILE[/SCENARIO[/BACKEND[/TARGET]]]]; a part may be empty.
func oneTestCase(text string) (bench.Selection, error) {
	parts := strings.Split(text, "/")
	const most = 5
	if parts[0] == "" || len(parts) > most {
		return bench.Selection{}, fmt.Errorf("the test case %q is not of the form BENCHMARK/PROFILE/SCENARIO/BACKEND/TARGET, such as gin/build/full; later parts may be left out where the suite has only one", text)
	}
	s := bench.Selection{Benchmarks: parts[:1]}
	for i, into := range []*[]string{&s.Profiles, &s.Scenarios, &s.Backends} {
		if len(parts) > i+1 && parts[i+1] != "" {
			*into = []string{parts[i+1]}
		}
	}
	if len(parts) == most && parts[most-1] != "" {
		target, err := bench.ParseTarget(parts[most-1])
		if err != nil {
			return s, err
		}
		s.Targets = []bench.Target{target}
	}
	return s, nil
}

// await waits for the profiles of a request and says what to do with them.
func (f *askedProfile) await(cmd *cobra.Command, api *apiclient.Client, r apiclient.Request) error {
	w := &watcher{api: api, refs: []string{string(r.ID)}, quiet: f.quiet, out: cmd.ErrOrStderr()}
	ended, err := w.run(cmd.Context())
	if err != nil {
		if cmd.Context().Err() == nil {
			return reached(err)
		}
		return fmt.Errorf("stopped waiting for request %s, which continues; 'benchloom request cancel %s --reason …' ends it", r.ID, r.ID)
	}
	made, err := api.CodeProfiles(cmd.Context(), r.Project, apiclient.CodeProfileQuery{Request: r.ID})
	if err != nil {
		return reached(err)
	}
	slices.SortStableFunc(made, func(a, b apiclient.CodeProfile) int { // the baseline first, as a difference is read
		switch a.Tag {
		case b.Tag:
			return 0
		case r.Versus:
			return -1
		}
		return 1
	})
	return errors.Join(f.showMade(cmd, made), outcomes(ended))
}

func (f *askedProfile) showMade(cmd *cobra.Command, made []apiclient.CodeProfile) error {
	out := cmd.OutOrStdout()
	if f.output == formatJSON {
		return cli.WriteJSON(out, apiclient.CodeProfileList{Profiles: made})
	}
	var text strings.Builder
	for _, p := range made {
		if f.quiet {
			fmt.Fprintln(&text, p.ID)
			continue
		}
		fmt.Fprintf(&text, "profile %s of %s\n  benchloom profile top %s\n  benchloom profile get %s --form html >flames.html\n", p.ID, cli.Printable(p.Tag), p.ID, p.ID)
	}
	if len(made) == 2 && !f.quiet {
		fmt.Fprintf(&text, "what changed\n  benchloom profile diff %s %s\n", made[0].ID, made[1].ID)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func newProfileList() *cobra.Command {
	var f serviceFlags
	var q apiclient.CodeProfileQuery
	var request, output string
	cmd := &cobra.Command{
		Use:   "list PROJECT",
		Short: "List stored profiles, newest first",
		Example: `  benchloom profile list go
  benchloom profile list go --tag 1.26.0 --benchmark gin -o csv`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bench.CheckName("project", args[0]); err != nil {
				return usage(err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			q.Request = bench.RequestID(request)
			found, err := api.CodeProfiles(cmd.Context(), args[0], q)
			if err != nil {
				return reached(err)
			}
			if output == formatCSV {
				return cli.CodeProfileCSV(visible(cmd.OutOrStdout()), found)
			}
			return show(cmd, output, apiclient.CodeProfileList{Profiles: found}, cli.CodeProfiles)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&request, "request", "", "only those of this request")
	cmd.Flags().StringVar(&q.Tag, "tag", "", "only those of this artifact")
	cmd.Flags().StringVar(&q.Benchmark, "benchmark", "", "only those of this benchmark")
	cmd.Flags().IntVarP(&q.Limit, "number", "n", 100, "at most so many, up to 500")
	outputFlag(cmd, &output, formatTable, formatJSON, formatCSV)
	return cmd
}

func newProfileGet() *cobra.Command {
	var f serviceFlags
	var form, sampleType string
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Download a stored profile",
		Long: `Writes a stored profile to standard output: for 'go tool pprof' (pprof), as what its
profiler has written (raw), as folded stacks (folded), for https://www.speedscope.app
or the Firefox Profiler (speedscope), or as a page with a flame graph (html).`,
		Example: `  benchloom profile get p2kd7m3xqa5 >cpu.pprof
  benchloom profile get p2kd7m3xqa5 --form html >flames.html`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := bench.ParseProfileID(args[0])
			if err != nil {
				return usage(err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			return reached(api.CodeProfileFile(cmd.Context(), id, apiclient.ProfileForm(form), sampleType, cmd.OutOrStdout()))
		},
	}
	f.add(cmd.Flags())
	forms := &choice{value: &form, valid: []string{formatPprof, string(apiclient.FormRaw), formatFolded, formatSpeedscope, formatHTML}}
	form = formatPprof
	cmd.Flags().Var(forms, "form", "form of the file: "+strings.Join(forms.valid, ", "))
	forms.complete(cmd, "form")
	cmd.Flags().StringVar(&sampleType, "type", "", "sample type of folded, speedscope and html (default: that of the profile)")
	return cmd
}

// stored downloads a profile if the name is an ID of one, and no file has that name.
func (f *serviceFlags) stored(ctx context.Context, name string) (io.Reader, error) {
	id, err := bench.ParseProfileID(name)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // it names a file
	}
	if _, err := os.Stat(name); err == nil {
		return nil, nil //nolint:nilnil // as above
	}
	api, err := f.connect()
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	if err := api.CodeProfileFile(ctx, id, apiclient.FormPprof, "", &file); err != nil {
		return nil, reached(err)
	}
	return &file, nil
}
