package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/accounts"
	"github.com/benchloom/benchloom/internal/cli"
)

func newCollectorSetup() *cobra.Command {
	var n int
	var output string
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Make accounts for benchmarks on this machine",
		Long: `Makes the accounts that benchmarks run as under collectors that run as root: users
without rights, password and files, one for each collector or slot of the machine.
They are named benchloom-1, benchloom-2 and so on, and must be used for nothing
else: a collector ends all processes of its account. Accounts that exist are left as
they are. It needs root and useradd.`,
		Example: `  sudo benchloom collector setup
  sudo benchloom collector setup --accounts 8`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 || n > accounts.Most {
				return usage(fmt.Errorf("--accounts %d: 1 to %d are possible", n, accounts.Most))
			}
			if os.Geteuid() != 0 {
				return fmt.Errorf("only root can make accounts: run 'sudo benchloom collector setup'. A collector that does not run as root needs none, but its benchmarks can then read what it can")
			}
			pool := accounts.System()
			made, err := pool.Setup(cmd.Context(), n)
			if err != nil {
				return err
			}
			all, err := pool.All()
			if err != nil {
				return err
			}
			out := setUp{Accounts: make([]setUpAccount, len(all))}
			for i, a := range all {
				out.Accounts[i] = setUpAccount{Account: a, Made: slices.Contains(made, a)}
			}
			return show(cmd, output, out, writeSetUp)
		},
	}
	cmd.Flags().IntVar(&n, "accounts", 1, "number of accounts that the machine is to have: one for each of its collectors and slots")
	outputFlag(cmd, &output, formatTable, formatJSON)
	return cmd
}

// setUp lists the accounts of the machine.
type setUp struct {
	Accounts []setUpAccount `json:"accounts"`
}

type setUpAccount struct {
	accounts.Account
	// Made is set if the account did not exist before.
	Made bool `json:"made"`
}

func writeSetUp(w io.Writer, s setUp, _ cli.View) error {
	for _, a := range s.Accounts {
		state := "exists"
		if a.Made {
			state = "made"
		}
		if _, err := fmt.Fprintf(w, "account %s (user %d, group %d): %s\n", a.Name, a.UID, a.GID, state); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s may run as root on this machine.\n", cli.Plural(len(s.Accounts), "collector"))
	return err
}
