package jobrun

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/suite"
)

// errRecipe reports a file step that cannot succeed because the suite is wrong.
var errRecipe = errors.New("the suite's step cannot be carried out")

// fileStep carries out a step that is not a command. It replaces files instead
// of changing them in place, so that the original of a hard-linked copy stays
// as it is.
func (p places) fileStep(ctx context.Context, step suite.Step, owner *Owner) error {
	c := copier{owner: owner}
	switch {
	case step.Write != nil:
		return p.rewrite(c, step.Write.File, func([]byte, bool) ([]byte, error) {
			return []byte(step.Write.Text), nil
		})
	case step.Append != nil:
		return p.rewrite(c, step.Append.File, func(old []byte, exists bool) ([]byte, error) {
			if !exists {
				return nil, fmt.Errorf("append to %s: no such file: %w", step.Append.File, errRecipe)
			}
			return append(old, step.Append.Text...), nil
		})
	case step.Replace != nil:
		return p.rewrite(c, step.Replace.File, func(old []byte, exists bool) ([]byte, error) {
			if !exists || step.Replace.Old == "" || !strings.Contains(string(old), step.Replace.Old) {
				return nil, fmt.Errorf("replace in %s: the file does not contain %q: %w", step.Replace.File, step.Replace.Old, errRecipe)
			}
			return []byte(strings.ReplaceAll(string(old), step.Replace.Old, step.Replace.New)), nil
		})
	case step.Copy != nil:
		return p.copyStep(ctx, c, *step.Copy)
	case step.Remove != "":
		path, err := p.writable(step.Remove)
		if err != nil {
			return err
		}
		if slices.Contains(slices.Collect(maps.Values(p.real)), path) {
			return fmt.Errorf("remove %s: name what is in it, not the directory itself: %w", step.Remove, errRecipe)
		}
		return removeTree(path)
	}
	return fmt.Errorf("a step has no action: %w", errRecipe)
}

// rewrite replaces a file's contents with the result of edit.
func (p places) rewrite(c copier, file string, edit func(old []byte, exists bool) ([]byte, error)) error {
	path, err := p.writable(file)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	var old []byte
	info, err := os.Lstat(path)
	exists := err == nil && info.Mode().IsRegular()
	if err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory, not a file: %w", file, errRecipe)
	}
	if exists {
		mode = info.Mode().Perm() | 0o600
		if old, err = os.ReadFile(path); err != nil {
			return err
		}
	}
	text, err := edit(old, exists)
	if err != nil {
		return err
	}
	if err := c.makeDirs(filepath.Dir(path)); err != nil {
		return err
	}
	if err := replacing(path, func() error { return writeNew(path, text) }); err != nil {
		return err
	}
	if err := os.Chmod(path, mode); err != nil {
		return err
	}
	return c.give(path)
}

func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

func (p places) copyStep(ctx context.Context, c copier, step suite.FileCopy) error {
	from, err := p.readable(step.From)
	if err != nil {
		return err
	}
	to, err := p.writable(step.To)
	if err != nil {
		return err
	}
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("copy %s: no such file or directory: %w", step.From, errRecipe)
	}
	if err != nil {
		return err
	}
	if err := c.makeDirs(filepath.Dir(to)); err != nil {
		return err
	}
	if info.IsDir() {
		return c.tree(ctx, from, to)
	}
	return c.file(from, to, false)
}

// makeDirs creates a directory and its parents.
func (c copier) makeDirs(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if err := c.makeDirs(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	return c.give(path)
}
