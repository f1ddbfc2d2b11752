package commits

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/revision"
)

// environment keeps git from running programs named by a repository's own
// configuration, and from using unusual protocols.
func environment(environ []string) []string {
	return append(revision.Environment(environ), "GIT_ALLOW_PROTOCOL=http:https:ssh:git", "GIT_NO_LAZY_FETCH=1", "GIT_PAGER=cat", "GIT_ADVICE=0")
}

// harmless lists settings that override those of a repository.
var harmless = []string{
	"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "core.alternateRefsCommand=true", "-c", "core.askPass=",
	"-c", "credential.interactive=false", "-c", "log.showSignature=false", "-c", "gc.autoDetach=false", "-c", "maintenance.autoDetach=false",
	"-c", "gc.pruneExpire=never", "-c", "fetch.recurseSubmodules=false", "-c", "fetch.writeCommitGraph=false", "-c", "transfer.bundleURI=false",
	"-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60", "-c", "protocol.ext.allow=never", "-c", "protocol.file.allow=never",
}

// gitError reports a failed git command.
type gitError struct {
	code int    // exit code; -1 if it did not exit by itself
	said string // on standard error, its end
	err  error
}

func (e *gitError) Error() string {
	if e.said == "" {
		return "git: " + e.err.Error()
	}
	return "git: " + e.said
}

func (e *gitError) Unwrap() error { return e.err }

// exitCode returns git's exit code; 0 if there is none.
func exitCode(err error) int {
	if e, ok := errors.AsType[*gitError](err); ok {
		return e.code
	}
	return 0
}

// run runs git and calls each for every line of its output; each stops it by
// returning false.
func (g *git) run(ctx context.Context, each func(line string) bool, args ...string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cmd := exec.CommandContext(ctx, "git", slices.Concat(harmless, args)...)
	cmd.Env, cmd.Dir = g.env, os.TempDir() // never inside some repository
	own(cmd)
	cmd.WaitDelay = 2 * time.Second
	var stderr tail
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("running git: %w", err)
	}
	if err := cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return fmt.Errorf("this needs the git program on the orchestrator's machine: %w", err)
		}
		return fmt.Errorf("running git: %w", err)
	}
	enough := false
	lines := bufio.NewScanner(stdout)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for !enough && lines.Scan() {
		enough = each != nil && !each(lines.Text())
	}
	readErr := lines.Err()
	if enough || readErr != nil {
		stop()
	}
	_, _ = io.Copy(io.Discard, stdout) // what is left over once git was stopped
	err = cmd.Wait()
	switch {
	case enough:
		return nil
	case readErr != nil && !errors.Is(readErr, os.ErrClosed):
		return fmt.Errorf("reading git's output: %w", readErr)
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return &gitError{code: cmd.ProcessState.ExitCode(), said: stderr.oneLine(), err: err}
}

// maxLine limits one line of git's output in bytes: a commit's subject may be
// its whole message.
const maxLine = 16 << 20

// tail is a writer that keeps the end of its input.
type tail struct{ b bytes.Buffer }

const maxTail = 4000

func (t *tail) Write(p []byte) (int, error) {
	t.b.Write(p)
	if t.b.Len() > 2*maxTail {
		t.b.Next(t.b.Len() - maxTail)
	}
	return len(p), nil
}

// oneLine returns git's message without progress and advice.
func (t *tail) oneLine() string {
	var out []string
	for line := range strings.Lines(strings.ToValidUTF8(t.b.String(), "\uFFFD")) {
		line = strings.TrimSpace(line[strings.LastIndex(strings.TrimRight(line, "\r\n"), "\r")+1:])
		if line == "" || strings.HasPrefix(line, "hint:") || strings.HasPrefix(line, "warning:") || strings.HasPrefix(line, "remote:") {
			continue
		}
		out = append(out, strings.TrimPrefix(line, "fatal: "))
	}
	text := revision.Redact(strings.Join(out, "; "))
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "") + "…"
	}
	return text
}
