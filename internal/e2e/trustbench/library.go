package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// module holds the Go library under test. Its files end in .txt, so that it is no package of this module.
//
//go:embed module
var module embed.FS

// slowed is the benchmark whose work grows with the rounds in rounds.go.
const (
	slowed       = "Checksum"
	slowedMetric = "ns/op"
	plainRounds  = 1000
)

// library is a git repository of a Go module.
type library struct{ dir string }

// openLibrary opens the repository, or makes one.
func openLibrary(ctx context.Context, dir string) (library, error) {
	l := library{dir}
	if _, err := l.git(ctx, "rev-parse", "--verify", "--quiet", "main"); err == nil {
		return l, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return l, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return l, err
	}
	if _, err := l.git(ctx, "init", "--quiet", "--initial-branch=work"); err != nil {
		return l, err
	}
	files, err := module.ReadDir("module")
	if err != nil {
		return l, err
	}
	for _, f := range files {
		text, err := module.ReadFile("module/" + f.Name())
		if err != nil {
			return l, err
		}
		if err := l.write(strings.TrimSuffix(f.Name(), ".txt"), string(text)); err != nil {
			return l, err
		}
	}
	if err := l.commit(ctx, plainRounds, 0); err != nil {
		return l, err
	}
	_, err = l.git(ctx, "branch", "main")
	return l, err
}

func (l library) git(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = l.dir
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES="+filepath.Dir(l.dir),
		"GIT_AUTHOR_NAME=trustbench", "GIT_AUTHOR_EMAIL=trustbench@example.org", "GIT_COMMITTER_NAME=trustbench", "GIT_COMMITTER_EMAIL=trustbench@example.org")
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running git %s in %s: %w: %s", strings.Join(args, " "), l.dir, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func (l library) write(name, text string) error {
	return os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o644)
}

// commit commits the library with a number of rounds and, above 0, a revision, which is a comment.
func (l library) commit(ctx context.Context, rounds, revision int) error {
	text := fmt.Sprintf("package trust\n\n// Rounds of a checksum.\nconst rounds = %d\n", rounds)
	if revision > 0 {
		text += fmt.Sprintf("\n// Revision %d changes nothing else.\n", revision)
	}
	if err := l.write("rounds.go", text); err != nil {
		return err
	}
	if _, err := l.git(ctx, "add", "--all"); err != nil {
		return err
	}
	_, err := l.git(ctx, "commit", "--quiet", "--allow-empty", "-m", fmt.Sprintf("%d rounds", rounds))
	return err
}

// release tags a new commit whose code is the same as before, and returns its version.
func (l library) release(ctx context.Context) (string, error) {
	tags, err := l.git(ctx, "tag", "--list", "v0.0.*")
	if err != nil {
		return "", err
	}
	number := len(strings.Fields(tags)) + 1
	version := "v0.0." + strconv.Itoa(number)
	if err := l.commit(ctx, plainRounds, number); err != nil {
		return "", err
	}
	_, err = l.git(ctx, "tag", version)
	return version, err
}

// pair tags the library as it is and one that is slower by so many per cent, with tags that nothing was measured of yet. The
// trees are the same each time, so they are built once.
func (l library) pair(ctx context.Context, slower int) (baseline, slow string, err error) {
	tags, err := l.git(ctx, "tag", "--list", "pair-*-plain")
	if err != nil {
		return "", "", err
	}
	name := fmt.Sprintf("pair-%d-", len(strings.Fields(tags))+1)
	baseline, slow = name+"plain", fmt.Sprintf("%sslower%d", name, slower)
	if err := l.commit(ctx, plainRounds*(100+slower)/100, 0); err != nil {
		return "", "", err
	}
	if _, err := l.git(ctx, "tag", slow); err != nil {
		return "", "", err
	}
	_, err = l.git(ctx, "tag", baseline, "main")
	return baseline, slow, err
}
