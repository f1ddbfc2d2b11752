package orchestration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/definitions"
	"github.com/benchloom/benchloom/internal/store"
)

// definitionsRemark begins the remark about definitions that cannot be taken. The remark stays
// until they can be: the next look tries again.
const definitionsRemark = "the definitions "

// takeDefinitions gives the project the graph templates of its branch's newest commit, if its
// source names their folder and they have changed. Their faults become a remark and keep no
// commit from being measured.
func (l *commitLook) takeDefinitions(ctx context.Context) error {
	folder, head := l.config.Source.Definitions, l.history.Head
	if folder == "" || head == "" || head == l.state.Head && !strings.Contains(l.state.Message, definitionsRemark) {
		return nil
	}
	read, err := l.definitionsAt(ctx, head, folder)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		first, _, _ := strings.Cut(err.Error(), "\n")
		l.remark(fmt.Sprintf("%s%s of commit %.12s are not taken: %s", definitionsRemark, folder, head, first))
		return nil
	}
	source := l.config.Source.Git + "@" + l.config.Source.BranchName()
	last, err := l.Store.PushedDefinitions(ctx, l.project, "", "")
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err == nil && last.Hash == read.Hash() && last.Source == source {
		return nil
	}
	_, err = l.Store.PushDefinitions(ctx, l.project, store.Definitions{Hash: read.Hash(), Files: read.Files(), Source: source},
		store.Act{Who: bench.CommitSubmitter, Reason: fmt.Sprintf("commit %.12s of %s", head, l.config.Source.BranchName())})
	l.result.Definitions = read.Hash()
	return err
}

// definitionsAt reads and checks a folder of a commit.
func (l *commitLook) definitionsAt(ctx context.Context, commit, folder string) (read *definitions.Folder, err error) {
	if l.Revisions == nil {
		return nil, errors.New("this orchestrator reads no repositories")
	}
	rev, err := l.Revisions.Resolve(ctx, l.config.Source.Git, commit)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "benchloom-definitions-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for the tree: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := l.Revisions.Export(ctx, l.config.Source.Git, rev, dir); err != nil {
		return nil, err
	}
	// The root keeps links of the tree from leading elsewhere.
	root, err := os.OpenRoot(filepath.Join(dir, filepath.FromSlash(folder)))
	if err != nil {
		return nil, fmt.Errorf("the commit has no folder %s", folder)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if read, err = definitions.Read(root.FS()); err != nil {
		return nil, err
	}
	_, err = read.Check(ctx)
	return read, err
}
