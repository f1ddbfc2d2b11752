package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

func newToken() *cobra.Command {
	return group(&cobra.Command{
		Use:     "token",
		GroupID: groupUse,
		Short:   "Create, list, rotate and revoke tokens",
		Long: `Manages the tokens of people and CI systems. It takes a token with the role admin.
Collectors get their tokens by 'benchloom collector enroll'.`,
		Example: `  benchloom token create ci-go --role writer --project go
  benchloom token rotate t7k2m4q9xt2 --overlap 24h
  benchloom token revoke t7k2m4q9xt2 --reason "ada has left"`,
	}, newTokenCreate(), newTokenList(), newTokenRotate(), newTokenRevoke())
}

func newTokenCreate() *cobra.Command {
	var in apiclient.NewToken
	var expires string
	cmd := answering(&cobra.Command{
		Use:   "create ACCOUNT",
		Short: "Create a token and print its secret",
		Long: `Creates a token for an account and prints its ID and its secret. The secret is shown
only once: the service stores its SHA-256. The ID is no secret; other commands take it.

A reader reads, a writer also submits and cancels, an admin also configures. With
--project, the token changes nothing outside that project; it reads what its role
reads. Such tokens are meant for CI systems and expire after 90 days; others do not
expire. --expires sets another time.`,
		Example: `  benchloom token create ada --role admin
  benchloom token create ci-go --role writer --project go --expires 30d -o json`,
		Args: exactArgs(1),
	}, func(ctx context.Context, api *apiclient.Client, args []string) (apiclient.CreatedToken, error) {
		in.Owner = args[0]
		if expires != "" {
			validity, err := validityOf(expires)
			if err != nil {
				return apiclient.CreatedToken{}, err
			}
			seconds := int64(validity.Seconds())
			in.ValidSeconds = &seconds
		}
		return api.CreateToken(ctx, in)
	}, cli.TokenSecret)
	role := &choice{value: &in.Role, valid: []string{"reader", "writer", "admin"}}
	in.Role = role.valid[0]
	cmd.Flags().Var(role, "role", "role: "+strings.Join(role.valid, ", "))
	role.complete(cmd, "role")
	cmd.Flags().StringVar(&in.Project, "project", "", "the only project that it may change; for writer and admin")
	cmd.Flags().StringVar(&expires, "expires", "", "time until it expires, such as 30d or 12h, or never (default: 90d with --project, else never)")
	cmd.Flags().StringVar(&in.Reason, "reason", "", "reason, recorded in the audit")
	return cmd
}

func newTokenList() *cobra.Command {
	var ended bool
	cmd := listing(&cobra.Command{
		Use:   "list",
		Short: "List tokens, without their secrets",
		Example: `  benchloom token list
  benchloom token list --all -o json`,
	}, func(api *apiclient.Client, ctx context.Context) (apiclient.TokenList, error) {
		return api.Tokens(ctx, ended)
	}, cli.Tokens)
	cmd.Flags().BoolVar(&ended, "all", false, "also tokens that were revoked or have expired")
	return cmd
}

func newTokenRotate() *cobra.Command {
	var in apiclient.TokenRotation
	var expires string
	var overlap time.Duration
	cmd := answering(&cobra.Command{
		Use:   "rotate TOKEN-ID",
		Short: "Replace a token's secret and print the new one",
		Long: `Replaces a token's secret and prints the new one, once. Account, role, project and ID stay.
The former secret is refused at once, or after --overlap. The new secret is valid for
as long as the former one was, unless --expires says otherwise.`,
		Example: `  benchloom token rotate t7k2m4q9xt2 --overlap 24h`,
		Args:    exactArgs(1),
	}, func(ctx context.Context, api *apiclient.Client, args []string) (apiclient.CreatedToken, error) {
		id, err := bench.ParseTokenID(args[0])
		if err != nil {
			return apiclient.CreatedToken{}, usage(err)
		}
		if overlap < 0 || overlap > 30*24*time.Hour {
			return apiclient.CreatedToken{}, usage(fmt.Errorf("--overlap %v: use 0s to 720h", overlap))
		}
		in.OverlapSeconds = int64(overlap.Seconds())
		if expires != "" {
			validity, err := validityOf(expires)
			if err != nil {
				return apiclient.CreatedToken{}, err
			}
			if validity == 0 {
				return apiclient.CreatedToken{}, usage(errors.New("--expires never: the token keeps its kind of expiry when it is rotated; create another one with 'benchloom token create'"))
			}
			in.ValidSeconds = int64(validity.Seconds())
		}
		return api.RotateToken(ctx, id, in)
	}, cli.TokenSecret)
	cmd.Flags().DurationVar(&overlap, "overlap", 0, "time for which the former secret stays valid, such as 24h")
	cmd.Flags().StringVar(&expires, "expires", "", "time until the new secret expires, such as 30d (default: as long as the former one was valid)")
	cmd.Flags().StringVar(&in.Reason, "reason", "", "reason, recorded in the audit")
	return cmd
}

func newTokenRevoke() *cobra.Command {
	var in apiclient.TokenRevocation
	cmd := answering(&cobra.Command{
		Use:   "revoke TOKEN-ID",
		Short: "Revoke a token",
		Long: `Ends a token with all of its secrets, also that of a collector, which then has to be
invited again. The API that answers refuses it at once, others within ten seconds.`,
		Example: `  benchloom token revoke t7k2m4q9xt2 --reason "it was in a log"`,
		Args:    exactArgs(1),
	}, func(ctx context.Context, api *apiclient.Client, args []string) (apiclient.RevokedToken, error) {
		id, err := bench.ParseTokenID(args[0])
		if err != nil {
			return apiclient.RevokedToken{}, usage(err)
		}
		return api.RevokeToken(ctx, id, in)
	}, func(w io.Writer, t apiclient.RevokedToken, _ cli.View) error {
		text := fmt.Sprintf("token %s of %s is revoked", t.ID, t.Owner)
		if !t.Changed {
			text += "; nothing to do: it was revoked before"
		}
		_, err := fmt.Fprintln(w, cli.Printable(text))
		return err
	})
	cmd.Flags().StringVar(&in.Reason, "reason", "", "reason, recorded in the audit")
	return cmd
}

// maxValidity bounds the validity of a token: ten years.
const maxValidity = 3650 * 24 * time.Hour

// validityOf reads --expires: days, a duration, or never, which is 0.
func validityOf(text string) (time.Duration, error) {
	if text == "never" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		d = time.Duration(min(n, 10_000)) * 24 * time.Hour
	}
	if err != nil || d < time.Second || d > maxValidity {
		return 0, usage(fmt.Errorf("--expires %q: write a time of 1s to 3650d, such as 30d or 12h, or never", text))
	}
	return d, nil
}
