package revision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// failure is the error of a git command that ran and failed.
type failure struct {
	code int
	said string // the end of its message
	err  error
}

func (f *failure) Error() string {
	if f.said == "" {
		return "git: " + f.err.Error()
	}
	return "git: " + f.said
}

func (f *failure) Unwrap() error { return f.err }

// harmless lists settings that keep a repository's own from running programs.
var harmless = []string{"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false"}

// git runs the program in a directory and returns its standard output.
func (r *Repositories) git(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return "", fmt.Errorf("%w: install git on this machine: %w", ErrNoGit, err)
	}
	cmd := exec.CommandContext(ctx, program, slices.Concat(harmless, args)...)
	cmd.Dir, cmd.Env = dir, append(slices.Clone(r.environ), env...)
	cmd.WaitDelay = 5 * time.Second // helpers of git may hold its pipes
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		exit, ran := errors.AsType[*exec.ExitError](err)
		if !ran {
			return "", fmt.Errorf("running git: %w", err)
		}
		return "", &failure{code: exit.ExitCode(), said: lastLines(stderr.String()), err: err}
	}
	return stdout.String(), nil
}

// lastLines returns git's message on one line, shortened.
func lastLines(text string) string {
	const longest = 500 // bytes
	text = Redact(strings.Join(strings.Fields(text), " "))
	if len(text) > longest {
		text = "…" + strings.ToValidUTF8(text[len(text)-longest:], "")
	}
	return text
}

// gone lists phrases of git and its servers for a repository that does not
// exist or may not be read; all other errors may be temporary.
var gone = []string{
	"not a git repository", "does not appear to be a git repository", "does not exist", "repository not found", "' not found",
	"dubious ownership", "authentication failed", "could not read username", "permission denied", "access denied", "http 404",
	"requested url returned error: 403", "requested url returned error: 404", "remote helper",
}

// explain classifies an error of git by its message.
func explain(err error) error {
	var failed *failure
	if !errors.As(err, &failed) {
		return err
	}
	said := strings.ToLower(failed.said)
	if slices.ContainsFunc(gone, func(words string) bool { return strings.Contains(said, words) }) {
		return fmt.Errorf("%w: %w; correct its address, or the permission to read it", ErrNoRepository, err)
	}
	if strings.Contains(said, "no space left") {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// userInfo matches URLs up to their host. Passwords that are not encoded may hold @.
var userInfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)([^/\s'"]*)@`)

// Redact hides the users and passwords of all URLs in a text, such as a repository or a
// message of git. The user of ssh is no secret.
func Redact(text string) string {
	return userInfo.ReplaceAllStringFunc(text, func(found string) string {
		part := userInfo.FindStringSubmatch(found)
		if part[1] == "ssh://" && !strings.Contains(part[2], ":") {
			return found
		}
		return part[1] + "xxxxx@"
	})
}
