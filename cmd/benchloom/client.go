package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/up"
)

// newClientCommands returns the commands for users, with and without a service.
func newClientCommands() []*cobra.Command {
	return []*cobra.Command{
		newSubmit(), newStatus(), newRequest(), newGraph(), newRetrigger(), newRerun(), newTemplate(), newQueue(), newExplain(), newStats(), newSizeClass(), newJob(), newRun(), newLogs(), newCompare(), newResults(), newArtifact(), newProject(), newInfo(),
		newAudit(), newToken(), newRetention(),
		newBench(), newDoctor(), newProfile(), newSuite(), newDefinitions(), newVersion(),
	}
}

// serviceFlags are the flags of every command that uses the API.
type serviceFlags struct {
	api, tokenFile, stateDir string
	transport                transportFlags
}

func (f *serviceFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.api, "api", "", "address of the API (default: $BENCHLOOM_URL, else the stack of the state directory, else "+defaultAPI+")")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with a token (default: $BENCHLOOM_TOKEN, else the token of the state directory)")
	f.addStateDir(flags)
	f.transport.add(flags)
}

func (f *serviceFlags) addStateDir(flags *pflag.FlagSet) {
	flags.StringVar(&f.stateDir, "state-dir", env("BENCHLOOM_STATE_DIR", devstack.DefaultStateDir), "state directory of 'benchloom up'")
}

const defaultAPI = "http://127.0.0.1:7480"

// connect returns a client of the API.
func (f *serviceFlags) connect() (*apiclient.Client, error) {
	address, err := f.address()
	if err != nil {
		return nil, err
	}
	token, err := f.token(address)
	if err != nil {
		return nil, err
	}
	return f.transport.client(address, token)
}

func (f *serviceFlags) address() (string, error) {
	if address := env("BENCHLOOM_URL", ""); f.api == "" && address != "" {
		return address, nil
	}
	if f.api != "" {
		return f.api, nil
	}
	running, err := devstack.ReadUp(f.stateDir)
	switch {
	case errors.Is(err, devstack.ErrNotRunning):
		return defaultAPI, nil
	case err != nil:
		return "", fmt.Errorf("finding the stack of the state directory: %w; name the API with --api", err)
	case running.Addresses[up.AddressAPI] == "":
		return defaultAPI, nil
	}
	return running.Addresses[up.AddressAPI], nil
}

// token returns the token for the API at address. The state directory's token is
// valid only on this machine, so it is sent nowhere else.
func (f *serviceFlags) token(address string) (string, error) {
	token, err := secret(f.tokenFile, "BENCHLOOM_TOKEN")
	if token != "" || err != nil || f.tokenFile != "" || !onLoopback(address) {
		return token, err
	}
	token, err = devstack.ReadToken(f.stateDir, up.TokenUser)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%w; run as the user who started 'benchloom up', or set BENCHLOOM_TOKEN", err)
	}
	return token, nil
}

func onLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// reached gives err the exit code exitUnreached if the API cannot be reached.
func reached(err error) error {
	var problem *apiclient.Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &problem) && problem.Status != http.StatusServiceUnavailable:
		return err
	case apiclient.IsTransient(err):
		return &exitError{exitUnreached, err}
	}
	return err
}

// Formats of output.
const (
	formatTable    = "table"
	formatJSON     = "json"
	formatMarkdown = "markdown"
	formatBenchfmt = "benchfmt"
	formatCSV      = "csv"
)

// outputFlag adds -o. The first format is the default.
func outputFlag(cmd *cobra.Command, into *string, formats ...string) {
	choice := &choice{value: into, valid: formats}
	*into = formats[0]
	cmd.Flags().VarP(choice, "output", "o", "output format: "+strings.Join(formats, ", "))
	choice.complete(cmd, "output")
}

// choice is a flag with a fixed set of values.
type choice struct {
	value *string
	valid []string
}

func (c *choice) String() string { return *c.value }
func (c *choice) Type() string   { return "string" }
func (c *choice) Set(s string) error {
	if !slices.Contains(c.valid, s) {
		return fmt.Errorf("use %s", strings.Join(c.valid, ", "))
	}
	*c.value = s
	return nil
}

func (c *choice) complete(cmd *cobra.Command, flag string) {
	// It fails only if there is no such flag.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(c.valid, cobra.ShellCompDirectiveNoFileComp))
}

// exactArgs requires n arguments.
func exactArgs(n int) cobra.PositionalArgs { return rangeArgs(n, n) }

// rangeArgs requires least to most arguments; if most is negative, there is no
// upper bound.
func rangeArgs(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage(fmt.Errorf("arguments are missing; usage: %s", cmd.UseLine()))
		case most >= 0 && len(args) > most:
			return usage(fmt.Errorf("%q is one argument too many; usage: %s", args[most], cmd.UseLine()))
		}
		return nil
	}
}

// group makes cmd a command that has only subcommands.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		return usage(fmt.Errorf("%s has no command %q; use %s", cmd.CommandPath(), args[0], strings.Join(names, ", ")))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(commands...)
	return cmd
}

// view returns the format of tables on the command's output.
func view(cmd *cobra.Command) cli.View {
	return cli.View{Now: time.Now(), Width: terminalSize(cmd.OutOrStdout()).Width}
}

// terminalSize returns the size of a terminal; zero if w is not one.
func terminalSize(w io.Writer) cli.Size {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return cli.Size{}
	}
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width < 1 || height < 1 {
		return cli.Size{Width: 80, Height: 24}
	}
	return cli.Size{Width: width, Height: height}
}

// visible returns a writer for output that is not Benchloom's own: a terminal shows its
// control sequences instead of obeying them. Anything else gets the output as it is.
func visible(w io.Writer) io.Writer {
	if terminalSize(w).Width == 0 {
		return w
	}
	return cli.NewEscaper(w)
}

// colorful reports whether to write colours; see https://no-color.org.
func colorful(w io.Writer) bool {
	return terminalSize(w).Width > 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// requestRef checks a request's ID or project:tag.
func requestRef(s string) (string, error) {
	project, tag, named := strings.Cut(s, ":")
	if !named {
		_, err := bench.ParseRequestID(s)
		if err != nil {
			return "", usage(fmt.Errorf("%w; or name it as project:tag", err))
		}
		return s, nil
	}
	if err := errors.Join(bench.CheckName("project", project), bench.CheckTag(tag)); err != nil {
		return "", usage(err)
	}
	return s, nil
}

// pause waits, unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// show writes value in the chosen format.
func show[T any](cmd *cobra.Command, format string, value T, table func(io.Writer, T, cli.View) error) error {
	if format == formatJSON {
		return cli.WriteJSON(cmd.OutOrStdout(), value)
	}
	return table(cmd.OutOrStdout(), value, view(cmd))
}

// answering completes a command that shows an answer of the API.
func answering[T any](cmd *cobra.Command, ask func(ctx context.Context, api *apiclient.Client, args []string) (T, error),
	table func(io.Writer, T, cli.View) error,
) *cobra.Command {
	var f serviceFlags
	var output string
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := f.connect()
		if err != nil {
			return err
		}
		answer, err := ask(cmd.Context(), api, args)
		if err != nil {
			return reached(err)
		}
		return show(cmd, output, answer, table)
	}
	f.add(cmd.Flags())
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// listing is [answering] for a command without arguments.
func listing[T any](cmd *cobra.Command, list func(api *apiclient.Client, ctx context.Context) (T, error), table func(io.Writer, T, cli.View) error) *cobra.Command {
	cmd.Args = exactArgs(0)
	return answering(cmd, func(ctx context.Context, api *apiclient.Client, _ []string) (T, error) { return list(api, ctx) }, table)
}

// askOf is [answering] for a command whose only argument is a project.
func askOf[T any](cmd *cobra.Command, ask func(ctx context.Context, api *apiclient.Client, project string) (T, error),
	table func(io.Writer, T, cli.View) error,
) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := exactArgs(1)(cmd, args); err != nil {
			return err
		}
		if err := bench.CheckName("project", args[0]); err != nil {
			return usage(err)
		}
		return nil
	}
	return answering(cmd, func(ctx context.Context, api *apiclient.Client, args []string) (T, error) {
		return ask(ctx, api, args[0])
	}, table)
}
