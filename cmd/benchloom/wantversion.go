package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

// span parses a duration from one second to thirty days.
func span(flag, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > 30*24*time.Hour {
		return 0, fmt.Errorf("%s %q: write a duration of 1s to 720h, such as 24h", flag, text)
	}
	return d, nil
}

func newCollectorWantVersion() *cobra.Command {
	var f serviceFlags
	var output string
	var all, anyVersion bool
	cmd := &cobra.Command{
		Use:   "want-version [POOL] [VERSION]",
		Short: "Set the version that the collectors of a pool must run",
		Long: `Collectors of another version finish their job and exit with code 75; the wrapper
in deploy/systemd then installs the wanted version and starts it. A pool's own
version takes precedence over that for all pools. Without arguments, lists the
wanted versions.`,
		Example: `  benchloom collector want-version main v1.4.0
  benchloom collector want-version --all v1.4.0
  benchloom collector want-version main --any
  benchloom collector want-version`,
		Args: rangeArgs(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			want, change, err := wantedOf(args, all, anyVersion)
			if err != nil {
				return usage(err)
			}
			client, err := f.connect()
			if err != nil {
				return err
			}
			var list []apiclient.WantedVersion
			if change {
				list, err = client.WantVersion(cmd.Context(), want)
			} else {
				list, err = client.WantedVersions(cmd.Context())
			}
			if err != nil {
				return reached(err)
			}
			return show(cmd, output, list, wantedVersions)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&all, "all", false, "all pools without a version of their own")
	cmd.Flags().BoolVar(&anyVersion, "any", false, "allow any version again")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// wantedOf parses the arguments. change is false if they only ask for a list.
func wantedOf(args []string, all, anyVersion bool) (want apiclient.WantVersion, change bool, err error) {
	if len(args) == 0 && !all && !anyVersion {
		return want, false, nil
	}
	if !all {
		if len(args) == 0 {
			return want, false, errors.New("name a pool, or all with --all")
		}
		want.Pool, args = args[0], args[1:]
		if err := bench.CheckName("pool", want.Pool); err != nil {
			return want, false, err
		}
	}
	switch {
	case anyVersion && len(args) > 0:
		return want, false, errors.New("name either a version or --any")
	case !anyVersion && len(args) != 1:
		return want, false, errors.New("name one version, as 'benchloom version' prints it, or --any")
	case !anyVersion:
		want.Version = args[0]
	}
	return want, true, nil
}

func wantedVersions(w io.Writer, list []apiclient.WantedVersion, v cli.View) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "No version is wanted: collectors may run any version.")
		return err
	}
	t := cli.NewTable(cli.Column{Heading: "pool"}, cli.Column{Heading: "version"}, cli.Column{Heading: "set by"}, cli.Column{Heading: "set"})
	for _, is := range list {
		pool := is.Pool
		if pool == "" {
			pool = "(all others)"
		}
		t.Row(pool, is.Version, is.SetBy, cli.Ago(v.Now, is.SetAt))
	}
	return t.Write(w, v.Width)
}
