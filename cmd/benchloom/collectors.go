package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

// collectorClientCommands returns the subcommands of collector that use the API.
func collectorClientCommands() []*cobra.Command {
	return []*cobra.Command{
		newCollectorList(),
		newCollectorAction(collectorAction{
			use: "show", short: "Show a collector and the facts of its machine",
			call: func(api *apiclient.Client, ctx context.Context, name, _ string) (apiclient.Collector, error) {
				return api.Collector(ctx, name)
			},
			text: cli.Collector,
		}),
		newCollectorAction(collectorAction{
			use: "drain", short: "Let a collector or shared host finish its jobs and take no more",
			call: (*apiclient.Client).DrainCollector,
			text: standing("takes no further job"), hosts: true, reasoned: true,
		}),
		newCollectorAction(collectorAction{
			use: "activate", short: "Let a drained collector or shared host take jobs again",
			call: (*apiclient.Client).ActivateCollector,
			text: standing("takes jobs"), hosts: true, reasoned: true,
		}),
		newCollectorRemove(),
		newCollectorInvite(),
		newCollectorEnroll(),
		newCollectorWantVersion(),
		newCollectorRedeliver(),
		newCollectorSetup(),
		newCollectorCheck(),
	}
}

// standing returns a function that writes a collector's new state.
func standing(now string) func(io.Writer, apiclient.Collector, cli.View) error {
	return func(w io.Writer, c apiclient.Collector, _ cli.View) error {
		text := fmt.Sprintf("collector %s %s; it is %s", c.Name, now, c.State)
		if c.CurrentRun != "" {
			text += ", with run " + string(c.CurrentRun) + " in progress"
		}
		_, err := fmt.Fprintln(w, text)
		return err
	}
}

func newCollectorList() *cobra.Command {
	return listing(&cobra.Command{
		Use:     "list",
		Short:   "List collectors and their runs",
		Example: `  benchloom collector list`,
	}, (*apiclient.Client).Collectors, cli.Collectors)
}

// collectorAction describes a command that calls the API for one collector.
type collectorAction struct {
	use, short string
	call       func(api *apiclient.Client, ctx context.Context, name, reason string) (apiclient.Collector, error)
	text       func(io.Writer, apiclient.Collector, cli.View) error
	// hosts allows the name of a shared host, which stands for all of its slots.
	hosts bool
	// reasoned adds the flag for a reason.
	reasoned bool
}

// slots returns the collectors of a shared host; none if there is no such host.
func slots(ctx context.Context, api *apiclient.Client, host string) ([]apiclient.Collector, error) {
	all, err := api.Collectors(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(c apiclient.Collector) bool { return c.Host != host }), nil
}

// onSlots makes the call for each slot of a shared host.
func (a collectorAction) onSlots(ctx context.Context, api *apiclient.Client, of []apiclient.Collector, reason string) ([]apiclient.Collector, error) {
	done := make([]apiclient.Collector, len(of))
	for i, c := range of {
		var err error
		if done[i], err = a.call(api, ctx, c.Name, reason); err != nil {
			return nil, err
		}
	}
	return done, nil
}

func (a collectorAction) texts(w io.Writer, list []apiclient.Collector, v cli.View) error {
	for _, c := range list {
		if err := a.text(w, c, v); err != nil {
			return err
		}
	}
	return nil
}

func newCollectorAction(a collectorAction) *cobra.Command {
	var f serviceFlags
	var output, reason string
	cmd := &cobra.Command{
		Use:     a.use + " COLLECTOR",
		Short:   a.short,
		Example: "  benchloom collector " + a.use + " bench-1",
		Args:    exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bench.CheckName("collector", args[0]); err != nil {
				return usage(err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			if a.hosts {
				of, err := slots(cmd.Context(), api, args[0])
				if err == nil && len(of) > 0 {
					of, err = a.onSlots(cmd.Context(), api, of, reason)
				}
				if err != nil {
					return reached(err)
				}
				if len(of) > 0 {
					return show(cmd, output, of, a.texts)
				}
			}
			c, err := a.call(api, cmd.Context(), args[0], reason)
			if err != nil {
				return reached(err)
			}
			return show(cmd, output, c, a.text)
		},
	}
	f.add(cmd.Flags())
	if a.reasoned {
		cmd.Flags().StringVar(&reason, "reason", "", "reason, recorded in the audit")
	}
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

func newCollectorRemove() *cobra.Command {
	var f serviceFlags
	var force bool
	cmd := &cobra.Command{
		Use:     "remove COLLECTOR",
		Short:   "Remove an offline collector or shared host; its results stay",
		Example: `  benchloom collector remove bench-1`,
		Args:    exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := bench.CheckName("collector", args[0]); err != nil {
				return usage(err)
			}
			api, err := f.connect()
			if err != nil {
				return err
			}
			names := []string{args[0]}
			of, err := slots(cmd.Context(), api, args[0])
			if err != nil {
				return reached(err)
			}
			if len(of) > 0 {
				// Live ones first: without --force, nothing is removed if there is one.
				slices.SortStableFunc(of, func(a, b apiclient.Collector) int { return cmp.Compare(away(a), away(b)) })
				names = names[:0]
				for _, c := range of {
					names = append(names, c.Name)
				}
			}
			for _, name := range names {
				if err := api.RemoveCollector(cmd.Context(), name, force); err != nil {
					return reached(err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "collector %s is removed\n", name)
			}
			return nil
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&force, "force", false, "also remove a live collector: its run is lost and its process exits")
	return cmd
}

// away returns 1 for an offline collector, else 0, for sorting.
func away(c apiclient.Collector) int {
	if c.State == bench.CollectorOffline {
		return 1
	}
	return 0
}
