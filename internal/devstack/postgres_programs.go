package devstack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// postgresDirs are the directories in which distributions install the programs of
// Postgres outside PATH: Debian, Fedora's additional versions, Alpine, openSUSE, Homebrew
// on both kinds of Macs, Postgres.app.
var postgresDirs = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/libexec/postgresql*",
	"/usr/lib/postgresql*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// PostgresMissingError is returned when no suitable Postgres is installed.
type PostgresMissingError struct {
	// Want is the major version that wrote the database, or 0; Min is the oldest
	// accepted one, or 0.
	Want, Min int
	// Found lists the installed major versions.
	Found []int
	// Install is the command that installs it on this system; empty when its
	// package manager is not known.
	Install string
}

// Error says what is missing and how to get it.
func (e *PostgresMissingError) Error() string {
	text := "no PostgreSQL was found, neither on PATH nor where distributions install it"
	switch {
	case e.Want != 0 && len(e.Found) > 0:
		text = fmt.Sprintf("the database was created by PostgreSQL %d, but only %v is installed", e.Want, e.Found)
	case len(e.Found) > 0:
		text = fmt.Sprintf("PostgreSQL %d or newer is needed, but only %v is installed", e.Min, e.Found)
	}
	if e.Install == "" {
		return text + ": install PostgreSQL's server programs, or set DATABASE_URL to use another server"
	}
	return text + ": install it with \"" + e.Install + "\", or set DATABASE_URL to use another server"
}

// postgresPrograms are the programs of one installed version.
type postgresPrograms struct {
	postgres, initdb string
	major            int
}

// findPostgres returns the installed version to use: on PATH, else the newest. A
// database that exists (major above 0) needs the version that created it.
func findPostgres(ctx context.Context, options PostgresOptions, major int) (postgresPrograms, error) {
	var installed []postgresPrograms
	consider := func(dir string) {
		p := postgresPrograms{postgres: filepath.Join(dir, "postgres"), initdb: filepath.Join(dir, "initdb")}
		for _, program := range []string{p.postgres, p.initdb} {
			if _, err := exec.LookPath(program); err != nil {
				return
			}
		}
		var err error
		if p.major, err = postgresMajor(ctx, p.postgres); err == nil {
			installed = append(installed, p)
		}
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			consider(filepath.Dir(path))
		}
	}
	onPath := len(installed)
	patterns := options.SearchDirs
	if patterns == nil {
		patterns = postgresDirs
	}
	for _, pattern := range patterns {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			return postgresPrograms{}, fmt.Errorf("looking for PostgreSQL in %s: %w", pattern, err)
		}
		for _, dir := range dirs {
			consider(dir)
		}
	}
	slices.SortStableFunc(installed[onPath:], func(a, b postgresPrograms) int { return b.major - a.major })
	missing := &PostgresMissingError{Want: major, Min: options.MinMajor}
	for _, p := range installed {
		if (major == 0 || p.major == major) && p.major >= options.MinMajor {
			return p, nil
		}
		if !slices.Contains(missing.Found, p.major) {
			missing.Found = append(missing.Found, p.major)
		}
	}
	missing.Install = installCommand(major)
	return postgresPrograms{}, missing
}

var majorVersion = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

func postgresMajor(ctx context.Context, program string) (int, error) {
	output, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("asking %s for its version: %w", program, err)
	}
	version := majorVersion.FindSubmatch(output)
	if version == nil {
		return 0, fmt.Errorf("asking %s for its version: unexpected answer %q", program, output)
	}
	return strconv.Atoi(string(version[1]))
}

// installCommand installs the programs with the available package manager; major 0
// means the distribution's own version.
func installCommand(major int) string {
	version := func(format, fallback string) string {
		if major == 0 {
			return fallback
		}
		return fmt.Sprintf(format, major)
	}
	managers := []struct {
		program, command string
		root             bool
	}{
		{"apt-get", "apt-get install " + version("postgresql-%d", "postgresql"), true},
		{"dnf", "dnf install " + version("postgresql%d-server", "postgresql-server"), true},
		{"pacman", "pacman -S postgresql", true},
		{"apk", "apk add " + version("postgresql%d", "postgresql"), true},
		{"zypper", "zypper install " + version("postgresql%d-server", "postgresql-server"), true},
		{"brew", "brew install " + version("postgresql@%d", "postgresql@17"), false},
	}
	for _, manager := range managers {
		if _, err := exec.LookPath(manager.program); err != nil {
			continue
		}
		if manager.root && os.Geteuid() != 0 {
			return "sudo " + manager.command
		}
		return manager.command
	}
	return ""
}
