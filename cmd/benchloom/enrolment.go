package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

// defaultCollectorDir is the state directory of a stand-alone collector.
const defaultCollectorDir = ".benchloom-collector"

// Files of a collector's state directory.
const (
	enrolmentFile = "collector.json"
	ownTokenFile  = "token"
	spoolDir      = "spool"
	// slotsDir holds the state directories of the slots of a shared host.
	slotsDir = "slots"
	// wantedFile holds the version that a collector was told to run before it
	// exited with [exitOutdated].
	wantedFile = "wanted-version"
)

// enrolment holds the addresses that an enrolled collector uses. Its token is in a
// separate file.
type enrolment struct {
	Name      string `json:"name"`
	API       string `json:"api"`
	Temporal  string `json:"temporal"`
	Namespace string `json:"namespace"`
	// TLSCA and Insecure are what the machine was enrolled with, see [transportFlags].
	TLSCA    string `json:"tls_ca,omitempty"`
	Insecure bool   `json:"insecure,omitempty"`
}

// readEnrolment reads the enrolment in a state directory; nil if there is none.
func readEnrolment(dir string) (*enrolment, error) {
	text, err := os.ReadFile(filepath.Join(dir, enrolmentFile))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the enrolment: %w", err)
	}
	var e enrolment
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, fmt.Errorf("reading %s: %w; remove it and enrol this machine anew", filepath.Join(dir, enrolmentFile), err)
	}
	return &e, nil
}

// save writes the enrolment atomically.
func (e enrolment) save(dir string) error {
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the enrolment: %w", err)
	}
	return replaceFile(filepath.Join(dir, enrolmentFile), append(text, '\n'))
}

// replaceFile atomically writes a file that only its owner may read.
func replaceFile(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

type enrolFlags struct {
	stateDir, temporal string
	transport          transportFlags
}

func newCollectorEnroll() *cobra.Command {
	var f enrolFlags
	cmd := &cobra.Command{
		Use:   "enroll URL TOKEN",
		Short: "Enrol this machine as an invited collector",
		Long: `Exchanges an enrolment token, printed by 'benchloom collector invite', for the
collector's own token, and stores it in the state directory with everything else
that 'benchloom collector run' needs. An enrolment token enrols one machine, once.
The collector's own token never leaves the machine: the API knows only its hash.
With - instead of TOKEN, the token is read from standard input.`,
		Example: `  benchloom collector enroll https://bench.example.com ble_…
  benchloom collector run`,
		Args: exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], args[1]) },
	}
	cmd.Flags().StringVar(&f.stateDir, "state-dir", env("BENCHLOOM_COLLECTOR_DIR", defaultCollectorDir), "state directory of the collector")
	cmd.Flags().StringVar(&f.temporal, "temporal", "", "address of Temporal as seen from here (default: announced by the API)")
	f.transport.add(cmd.Flags())
	return cmd
}

func (f *enrolFlags) run(cmd *cobra.Command, address, token string) error {
	ctx := cmd.Context()
	token, err := enrolmentToken(cmd.InOrStdin(), token)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(f.stateDir)
	if err != nil {
		return usage(fmt.Errorf("--state-dir: %w", err))
	}
	already, err := readEnrolment(dir)
	if err != nil {
		return err
	}
	if already != nil {
		return fmt.Errorf("state directory %s is enrolled already, as collector %s at %s; name another one with --state-dir, or remove %s to enrol it anew",
			dir, already.Name, already.API, filepath.Join(dir, enrolmentFile))
	}
	if f.transport.ca != "" {
		if f.transport.ca, err = filepath.Abs(f.transport.ca); err != nil {
			return usage(fmt.Errorf("--tls-ca: %w", err))
		}
	}
	client, err := f.transport.client(address, "")
	if err != nil {
		return err
	}
	// Check whatever can fail before the token is used up.
	info, err := client.Info(ctx)
	if err != nil {
		return reached(err)
	}
	temporal, err := f.temporalFrom(client.BaseURL(), info)
	if err != nil {
		return err
	}
	secretHash, err := ownSecret(dir, ownTokenFile)
	if err != nil {
		return err
	}
	enrolled, err := client.EnrollCollector(ctx, apiclient.Enrolment{Token: token, SecretHash: secretHash, Host: bench.Target(hostTarget())})
	if err != nil {
		return reached(err)
	}
	is := enrolled.Invitation
	if err := (enrolment{Name: is.Name, API: client.BaseURL(), Temporal: temporal, Namespace: enrolled.Namespace, TLSCA: f.transport.ca, Insecure: f.transport.insecure}).save(dir); err != nil {
		return fmt.Errorf("%w; fix that and run the same command again", err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "enrolled as collector %s: target %s, size class %d, pool %s\nstart it with: benchloom collector run --state-dir %s\n",
		is.Name, is.Target, is.SizeClass, is.Pool, f.stateDir)
	return nil
}

// enrolmentToken returns the token, read from in if it is "-".
func enrolmentToken(in io.Reader, token string) (string, error) {
	if token == "-" {
		text, err := io.ReadAll(io.LimitReader(in, 1024))
		if err != nil {
			return "", fmt.Errorf("reading the enrolment token: %w", err)
		}
		token = strings.TrimSpace(string(text))
	}
	if !strings.HasPrefix(token, apiclient.EnrolmentPrefix) {
		return "", usage(fmt.Errorf("not an enrolment token: it must begin with %s; 'benchloom collector invite' prints one", apiclient.EnrolmentPrefix))
	}
	return token, nil
}

// temporalFrom returns the address at which this machine reaches Temporal.
func (f *enrolFlags) temporalFrom(api string, info apiclient.Info) (string, error) {
	if f.temporal != "" {
		return f.temporal, nil
	}
	if info.Temporal == "" {
		return "", errors.New("the API does not say where Temporal is; name its address with --temporal, or start the API with --announce-temporal")
	}
	host, _, err := net.SplitHostPort(info.Temporal)
	if err != nil {
		host = info.Temporal
	}
	if ip := net.ParseIP(host); (host == "localhost" || ip != nil && ip.IsLoopback()) && !onLoopback(api) {
		return "", fmt.Errorf("the API says that Temporal is at %s, which is this machine itself; name its address as seen from here with --temporal, or start the API with --announce-temporal", info.Temporal)
	}
	return info.Temporal, nil
}

// ownSecret generates the collector's own token in a file of its state directory, or
// reuses that of an earlier enrolment, and returns its hash.
func ownSecret(dir, file string) (hash string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("state directory %s cannot be used: %w; name another with --state-dir", dir, err)
	}
	path := filepath.Join(dir, file)
	secret, err := secret(path, "")
	if errors.Is(err, fs.ErrNotExist) {
		if secret, err = api.NewToken(rand.Reader); err == nil {
			err = replaceFile(path, []byte(secret+"\n"))
		}
	}
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:]), nil
}

type inviteFlags struct {
	serviceFlags
	invite        apiclient.Invite
	target        string
	class         int
	validity, out string
	machine       machineFlags
}

func newCollectorInvite() *cobra.Command {
	var f inviteFlags
	cmd := &cobra.Command{
		Use:   "invite NAME",
		Short: "Configure a collector and print its enrolment token",
		Long: `Configures a collector's target, size class and pool, and prints a token that
enrols one machine. The token is shown only once. Inviting the same name again
invalidates the earlier token.`,
		Example: `  benchloom collector invite bench-2 --size-class 8 --pool main
  benchloom collector invite bench-2 --size-class 8 --pool main --replace`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	f.add(flags)
	flags.StringVar(&f.target, "target", hostTarget(), "target tuple to measure")
	flags.IntVar(&f.class, "size-class", 0, "size class (required)")
	flags.StringVar(&f.invite.Pool, "pool", "default", "pool of interchangeable collectors")
	labelFlag(flags, &f.invite.Labels, "label", "label of the machine, such as rack=2 (repeatable)")
	flags.StringSliceVar(&f.invite.BenchmarkSets, "benchmark-set", nil, "benchmark sets that the machine is meant for; for display only: projects bind sets to pools")
	f.machine.add(flags, "")
	flags.StringVar(&f.validity, "valid-for", "24h", "validity of the token, at most 720h")
	flags.BoolVar(&f.invite.Replace, "replace", false, "give the name of an enrolled collector to a new machine")
	outputFlag(cmd, &f.out, formatTable, formatJSON)
	return cmd
}

func (f *inviteFlags) run(cmd *cobra.Command, name string) error {
	pool, err := bench.NewPool(bench.Target(f.target), bench.SizeClass(f.class), f.invite.Pool)
	if err := errors.Join(bench.CheckName("collector", name), err, f.machine.check()); err != nil {
		return usage(err)
	}
	validity, err := span("--valid-for", f.validity)
	if err != nil {
		return usage(err)
	}
	f.invite.MachineType, f.invite.MachineGroup, f.invite.Devices = f.machine.machineType, f.machine.group, f.machine.devices
	f.invite.Name, f.invite.Target, f.invite.SizeClass, f.invite.ValidSeconds = name, pool.Target, pool.SizeClass, int(validity.Seconds())
	client, err := f.connect()
	if err != nil {
		return err
	}
	invited, err := client.InviteCollector(cmd.Context(), f.invite)
	if err != nil {
		return reached(err)
	}
	return show(cmd, f.out, invited, func(w io.Writer, i apiclient.Invitation, _ cli.View) error {
		_, err := fmt.Fprintf(w, "collector %s is invited; until %s, on its machine:\n  benchloom collector enroll %s %s\n",
			i.Name, i.ExpiresAt.UTC().Format("2006-01-02 15:04 UTC"), client.BaseURL(), i.Token)
		return err
	})
}
