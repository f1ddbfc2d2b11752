package commits

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// mirror returns the path of the mirror of a remote branch: a bare repository
// with that branch, the tags, and no files.
func (g *git) mirror() string {
	sum := sha256.Sum256([]byte(g.repository + "\x00" + g.branch))
	return filepath.Join(g.mirrors, hex.EncodeToString(sum[:8])+".git")
}

// fetched updates the mirror and returns its directory and the branch's head.
func (g *git) fetched(ctx context.Context) (dir, head string, err error) {
	there, err := g.remote(ctx)
	if err != nil {
		return "", "", err
	}
	ref := "refs/heads/" + g.branch
	head = there.wanted[ref]
	if head == "" {
		if len(there.branches) > 0 {
			return "", "", noBranch(g.branch, there.branches)
		}
		return "", "", nil
	}
	if err := os.MkdirAll(g.mirrors, 0o700); err != nil {
		return "", "", fmt.Errorf("creating the directory of mirrors: %w", err)
	}
	dir = g.mirror()
	lock := flock.New(dir + ".lock")
	defer func() { _ = lock.Unlock() }() // ends with the descriptor anyway
	switch locked, err := lock.TryLock(); {
	case err != nil:
		return "", "", fmt.Errorf("locking its mirror: %w", err)
	case !locked:
		return "", "", errors.New("its mirror is being fetched by another orchestrator or project; the next look will find it up to date")
	}
	if g.upToDate(ctx, dir, there.wanted) {
		return dir, head, nil
	}
	err = g.fetch(ctx, dir, ref, true)
	// The repository answers, so the mirror may be broken: a killed fetch
	// leaves locks and partial files. Or it has tags of files or trees, which a
	// sparing fetch cannot get. The mirror is only a copy: recreate it.
	for _, sparing := range []bool{true, false} {
		if err == nil || ctx.Err() != nil {
			break
		}
		if err := os.RemoveAll(dir); err != nil {
			return "", "", fmt.Errorf("removing its broken mirror: %w", err)
		}
		err = g.fetch(ctx, dir, ref, sparing)
	}
	if err != nil {
		return "", "", fmt.Errorf("fetching it: %w", err)
	}
	// The branch may have moved since its head was read.
	err = reader{git: g, dir: dir}.run(ctx, func(sha string) bool { head = sha; return true }, "rev-parse", "--verify", ref+"^{commit}")
	return dir, head, err
}

// refs holds the branches and tags of a remote repository.
type refs struct {
	branches []string
	wanted   map[string]string // the branch and the tags, with their targets
}

func (g *git) remote(ctx context.Context) (refs, error) {
	out := refs{wanted: make(map[string]string)}
	err := g.run(ctx, func(line string) bool {
		sha, name, _ := strings.Cut(line, "\t")
		if b, ok := strings.CutPrefix(name, "refs/heads/"); ok {
			out.branches = append(out.branches, b)
			if b != g.branch {
				return true
			}
		}
		if !strings.HasSuffix(name, "^{}") { // what an annotated tag points at
			out.wanted[name] = sha
		}
		return true
	}, "ls-remote", "--heads", "--tags", "--", g.repository)
	if err != nil {
		return out, fmt.Errorf("it cannot be read: %w; does it exist, and may the orchestrator's user read it without being asked for a password?", err)
	}
	return out, nil
}

func (g *git) upToDate(ctx context.Context, dir string, wanted map[string]string) bool {
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err != nil {
		return false
	}
	has := make(map[string]string)
	err := reader{git: g, dir: dir}.run(ctx, func(line string) bool {
		sha, name, _ := strings.Cut(line, " ")
		has[name] = sha
		return true
	}, "for-each-ref", "--format=%(objectname) %(refname)")
	return err == nil && maps.Equal(has, wanted)
}

// fetch creates the mirror if there is none and fetches one branch and the
// tags. A sparing mirror has no files if the server can leave them out: only
// commits are read.
func (g *git) fetch(ctx context.Context, dir, ref string, sparing bool) error {
	r := reader{git: g, dir: dir}
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err != nil {
		if err := g.run(ctx, nil, "init", "--quiet", "--bare", "--template=", "--", dir); err != nil {
			return err
		}
		settings := [][2]string{{"remote.origin.url", g.repository}}
		if sparing {
			settings = append(settings, [2]string{"core.repositoryFormatVersion", "1"}, [2]string{"extensions.partialClone", "origin"},
				[2]string{"remote.origin.promisor", "true"}, [2]string{"remote.origin.partialCloneFilter", "tree:0"})
		}
		for _, setting := range settings {
			if err := r.run(ctx, nil, "config", setting[0], setting[1]); err != nil {
				return err
			}
		}
	}
	return r.run(ctx, nil, "fetch", "--quiet", "--prune", "--force", "--no-tags", "--no-write-fetch-head", "origin", "+"+ref+":"+ref, "+refs/tags/*:refs/tags/*")
}
