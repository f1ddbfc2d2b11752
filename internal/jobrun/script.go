package jobrun

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/revision"
	"github.com/benchloom/benchloom/internal/suite"
)

// scripted is a command's script, ready to be carried out.
type scripted struct {
	bench.Script
	failure, retry []*regexp.Regexp
	// left is the number of times that the job may still be run again.
	left int
}

// newScripted reads the patterns of a script.
func newScripted(s bench.Script) (*scripted, error) {
	out := &scripted{Script: s, left: s.Retries}
	for _, list := range []struct {
		texts []string
		into  *[]*regexp.Regexp
	}{{s.Failure, &out.failure}, {s.RetryPatterns, &out.retry}} {
		for _, text := range list.texts {
			pattern, err := regexp.Compile(text)
			if err != nil {
				return nil, fmt.Errorf("%w: pattern %q: %w", bench.ErrInvalid, text, err)
			}
			*list.into = append(*list.into, pattern)
		}
	}
	return out, nil
}

// succeeds reports whether an exit code means success.
func (s *scripted) succeeds(code int) bool {
	return len(s.Success) == 0 && code == 0 || slices.Contains(s.Success, code)
}

// matcher finds the first line of an output that matches one of some patterns. It cuts lines at a
// length that no message needs.
type matcher struct {
	patterns []*regexp.Regexp
	line     []byte
	found    string
}

// maxLine bounds the part of a line that patterns see, in bytes.
const maxLine = 16 << 10

func (m *matcher) Write(p []byte) (int, error) {
	n := len(p)
	for m.found == "" && len(m.patterns) > 0 && len(p) > 0 {
		part, rest, whole := bytes.Cut(p, []byte("\n"))
		m.line = append(m.line, part[:min(len(part), max(0, maxLine-len(m.line)))]...)
		if p = rest; !whole {
			break
		}
		m.end()
	}
	return n, nil
}

// end looks at the line that has ended.
func (m *matcher) end() {
	for _, pattern := range m.patterns {
		if m.found == "" && pattern.Match(m.line) {
			m.found = pattern.String()
		}
	}
	m.line = m.line[:0]
}

// judged is the verdict of a script's rules on the end of a program.
type judged struct {
	success, again bool
	// why completes "it …"; empty for a success.
	why string
}

// judge applies the rules: patterns come before the exit code, and those for a retry before those
// for a failure.
func (s *scripted) judge(sample measure.Sample, failure, retry *matcher) judged {
	failure.end()
	retry.end()
	exited := sample.Status == measure.StatusExited && sample.Signal == "" && sample.ExitCode >= 0
	switch {
	case retry.found != "":
		return judged{again: true, why: fmt.Sprintf("printed a line that matches %q", retry.found)}
	case failure.found != "":
		return judged{why: fmt.Sprintf("printed a line that matches %q", failure.found)}
	case exited && slices.Contains(s.RetryCodes, sample.ExitCode):
		return judged{again: true, why: fmt.Sprintf("ended with exit status %d", sample.ExitCode)}
	case exited && s.succeeds(sample.ExitCode):
		return judged{success: true}
	case exited:
		return judged{why: fmt.Sprintf("ended with exit status %d; see its output", sample.ExitCode)}
	}
	return judged{why: strings.TrimSpace("ended by signal "+sample.Signal) + "; see its output"}
}

// checkoutName is the directory of the trees; a command starts with a copy of it.
const checkoutName = "checkout"

// checkOut exports the trees of a script, and returns their directory; empty if none.
func (r *runner) checkOut(ctx context.Context, s *scripted) (string, error) {
	if len(s.Checkouts) == 0 {
		return "", nil
	}
	root := r.m.place(checkoutName)
	checkouts := slices.Clone(s.Checkouts)
	slices.SortFunc(checkouts, func(a, b bench.ScriptCheckout) int { return cmp.Compare(a.Path, b.Path) }) // the outer before the inner
	for _, c := range checkouts {
		dir, what := filepath.Join(root, filepath.FromSlash(c.Path)), "checkout "+c.Revision
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
		fmt.Fprintf(r.log, "== %s: commit %s, tree %s of %s\n", what, c.Commit, c.Tree, revision.Redact(c.Repository))
		if err := r.job.Command.Revisions.Export(ctx, c.Repository, revision.Revision{Commit: c.Commit, Tree: c.Tree}, dir); err != nil {
			return "", revisionFailure(what, err)
		}
	}
	if err := r.giveTree(root); err != nil {
		return "", fmt.Errorf("giving the trees to the account of the commands: %w", err)
	}
	return root, nil
}

// commandRecipe returns the recipe of a command with its script: the last program is measured, and
// the programs before it prepare.
func (r *runner) commandRecipe(work string) suite.Recipe {
	c := r.job.Command
	recipe := suite.Recipe{
		Measure:    suite.Measurement{Run: c.Argv, Dir: work, Env: c.Env, Network: true},
		Iterations: max(1, r.job.Iterations),
		Timeout:    c.Timeout,
	}
	if r.script == nil {
		return recipe
	}
	in := func(dir string) string { return filepath.Join(work, filepath.FromSlash(dir)) }
	recipe.Measure.Dir = in(r.script.Dir)
	for _, step := range r.script.Before {
		recipe.Before = append(recipe.Before, suite.Step{Run: step.Argv, Dir: in(step.Dir), Env: step.Environment(), Network: true, Timeout: time.Duration(step.TimeoutSeconds) * time.Second})
		recipe.BeforeTimeout += time.Duration(step.TimeoutSeconds) * time.Second
	}
	return recipe
}
