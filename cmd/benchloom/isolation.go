package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/benchloom/benchloom/internal/accounts"
	"github.com/benchloom/benchloom/internal/measure"
)

// Values of --isolation.
const (
	isolationOn  = "on"
	isolationOff = "off"
)

// isolationFlags keep benchmarks apart from the collector and its machine.
type isolationFlags struct {
	mode    string
	account string
	hide    []string
}

// addIsolation adds the flag that switches isolation off.
func addIsolation(flags *pflag.FlagSet, mode *string) {
	flags.StringVar(mode, "isolation", env("BENCHLOOM_ISOLATION", isolationOn), "on: keep benchmarks from the service, other jobs and the machine, as far as it can be done here; off: they may do all that the collector may (default: $BENCHLOOM_ISOLATION, else on)")
}

func (f *isolationFlags) add(flags *pflag.FlagSet) {
	addIsolation(flags, &f.mode)
	flags.StringVar(&f.account, "account", "", "account for benchmarks of a collector that runs as root (default: a free one of 'benchloom collector setup')")
	flags.StringSliceVar(&f.hide, "hide", nil, "directory that benchmarks do not see, besides the state directory (repeatable)")
}

func checkIsolation(mode string) error {
	if mode != isolationOn && mode != isolationOff {
		return fmt.Errorf("--isolation %q: use on or off", mode)
	}
	return nil
}

func (f *isolationFlags) check() error {
	if err := checkIsolation(f.mode); err != nil {
		return err
	}
	if f.account != "" && (f.mode == isolationOff || os.Geteuid() != 0) {
		return errors.New("--account is for collectors that run as root, with isolation")
	}
	return nil
}

// accountFile holds the name of the account that the slot had last: caches belong to it.
const accountFile = "account"

// endBound bounds the wait for the end of processes that an account left running.
const endBound = 10 * time.Second

// lease returns the account that the slot's benchmarks run as; nil means that of this process, with a warning if it is root.
func (f *collectorFlags) lease(ctx context.Context, log *slog.Logger) (_ *accounts.Lease, err error) {
	if f.isolation.mode == isolationOff {
		log.WarnContext(ctx, "isolation is off: benchmarks may read and change all that this collector may, its token among them", "collector", f.name)
		return nil, nil
	}
	if os.Geteuid() != 0 {
		return nil, nil
	}
	if err := accounts.Switchable(); err != nil {
		log.WarnContext(ctx, "benchmarks run as root, because no account can be used here", "collector", f.name, "reason", err)
		return nil, nil
	}
	pool, remembered := accounts.System(), filepath.Join(f.stateDir, accountFile)
	var lease *accounts.Lease
	if f.isolation.account != "" {
		lease, err = pool.Use(f.isolation.account)
	} else {
		last, _ := os.ReadFile(remembered) // none is remembered at first
		lease, err = pool.Take(ctx, strings.TrimSpace(string(last)))
	}
	switch {
	case errors.Is(err, accounts.ErrNone):
		return nil, fmt.Errorf("collector %s runs as root: %w; make one with 'benchloom collector setup', run the collector as an ordinary user, or let benchmarks do all that root may with --isolation=off", f.name, err)
	case errors.Is(err, accounts.ErrTaken):
		return nil, fmt.Errorf("collector %s: %w; make another one with 'benchloom collector setup --accounts N'", f.name, err)
	case err != nil:
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lease.Release())
		}
	}()
	ending, stop := context.WithTimeout(ctx, endBound)
	defer stop()
	killed, err := lease.EndProcesses(ending)
	if err != nil {
		return nil, err
	}
	if killed > 0 {
		log.WarnContext(ctx, "ended processes of the benchmarks' account", "account", lease.Name, "processes", killed)
	}
	return lease, replaceFile(remembered, []byte(lease.Name+"\n"))
}

const (
	// cachesDir holds what suites keep, by project and suite.
	cachesDir = "caches"
	// oldCacheDir was the name in earlier versions, in which all suites and commands could change it: nothing of it is used.
	oldCacheDir = "cache"
)

// directories makes the slot's directories. The service's files are its own; the account enters only its work directory,
// suites and artifacts, and the caches of a project while a job of it runs.
func (f *collectorFlags) directories(account *accounts.Account, workDir string) error {
	_ = os.RemoveAll(filepath.Join(f.stateDir, oldCacheDir)) // leftovers only take room
	caches := filepath.Join(f.stateDir, cachesDir)
	above, own := os.FileMode(0o700), os.FileMode(0o700)
	if account != nil {
		above = 0o711
	}
	for _, d := range []struct {
		path string
		mode os.FileMode
	}{{f.stateDir, above}, {caches, above}, {workDir, own}, {filepath.Join(f.stateDir, "repositories"), own}} {
		if err := os.MkdirAll(d.path, d.mode); err != nil {
			return err
		}
		if err := os.Chmod(d.path, d.mode); err != nil {
			return err
		}
	}
	if account == nil {
		return nil
	}
	return giveCaches(*account, caches)
}

// giveCaches makes the account own the cache of each suite. The directories of projects stay the collector's, and are closed
// until one of their jobs begins.
func giveCaches(account accounts.Account, caches string) error {
	projects, err := os.ReadDir(caches)
	if err != nil {
		return err
	}
	for _, project := range projects {
		if !project.IsDir() {
			continue // archives are the collector's, too
		}
		dir := filepath.Join(caches, project.Name())
		if err := os.Chmod(dir, 0o700); err != nil {
			return err
		}
		suites, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, suite := range suites {
			if err := account.Give(filepath.Join(dir, suite.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// view sets what commands see of the machine's files, whose directories exist: of the state directory only the parts meant for
// them. Directories that their account cannot enter are closed, so that the way to their own directories is free.
func (f *collectorFlags) view(config *measure.SandboxConfig, account *accounts.Account) error {
	if f.isolation.mode == isolationOff {
		config.Isolation.Off = true
		return nil
	}
	for _, dir := range []string{f.artifactDir, filepath.Join(f.stateDir, "suites")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if account != nil {
			if err := os.Chmod(dir, 0o755); err != nil {
				return err
			}
		}
		config.Isolation.ReadOnly = append(config.Isolation.ReadOnly, dir)
	}
	hidden := append([]string{f.stateDir}, f.isolation.hide...)
	if f.tokenFile != "" {
		hidden = append(hidden, f.tokenFile)
	}
	for _, path := range hidden {
		path, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		config.Isolation.Hidden = append(config.Isolation.Hidden, path)
	}
	if account == nil {
		return nil
	}
	for _, dir := range append([]string{config.WorkDir}, config.Isolation.ReadOnly...) {
		blocked, err := account.Blocked(dir)
		if err != nil {
			return err
		}
		if blocked != "" && blocked != dir {
			config.Isolation.Closed = append(config.Isolation.Closed, blocked)
		}
	}
	return nil
}

// reachable returns an error if the account cannot enter the directories of its commands. If commands have their own mounts, no
// directory above hinders them.
func (f *collectorFlags) reachable(account *accounts.Account, unenforced []measure.Unenforced, dirs ...string) error {
	own := !slices.ContainsFunc(unenforced, func(u measure.Unenforced) bool { return u.Name == measure.LimitFiles })
	if account == nil || own {
		return nil
	}
	for _, dir := range dirs {
		blocked, err := account.Blocked(dir)
		if err != nil {
			return err
		}
		if blocked != "" {
			return fmt.Errorf("collector %s: account %s, as which benchmarks run, cannot enter %s: use a state directory elsewhere, such as --state-dir /var/lib/benchloom, or let others pass with 'chmod o+x %s'", f.name, account.Name, blocked, blocked)
		}
	}
	return nil
}
