package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// GOROOT provides Go toolchains that are already on this machine, such as local builds. They are used in place.
//
// Parameters: "path.<tag>" is the directory of that tag; "path" is the directory of all others and may contain {tag} and
// {target}. Without either, the tag itself has to be an absolute path.
//
// The identity consists of the output of go version, size and time of the go command, and the hash of the file VERSION.
type GOROOT struct{}

// Name returns "goroot".
func (GOROOT) Name() string { return "goroot" }

// Resolve reduces the parameters to the one path of the tag.
func (g GOROOT) Resolve(req Request) (Request, error) {
	if err := req.onlyParameters("path", "path."); err != nil {
		return Request{}, err
	}
	if req.Parameters["path"] == "" && req.Parameters["path."+req.Tag] == "" {
		if !filepath.IsAbs(req.Tag) {
			return Request{}, req.invalid("no directory is known for this tag", `set the parameter "path.`+req.Tag+`" or "path", or use an absolute path as tag`)
		}
		return inPlaceRequest(req, filepath.Clean(req.Tag))
	}
	return resolvePath(req)
}

// Locate checks that the directory holds a go command that runs.
func (g GOROOT) Locate(ctx context.Context, req Request, progress ProgressFunc) (Location, error) {
	dir := req.Parameters["path"]
	progress(Progress{Step: "checking " + dir})
	if err := checkDir(req, dir); err != nil {
		return Location{}, err
	}
	goCmd, err := os.Stat(goCommand(dir))
	if err != nil {
		return Location{}, &Error{Kind: NotFound, Artifact: req.String(), Reason: "not a GOROOT", Err: err,
			Remedy: "name a directory with bin/go in it; in a source tree run src/make.bash first"}
	}
	says, err := goVersion(ctx, dir)
	if err != nil {
		return Location{}, fmt.Errorf("running the go command of %s: %w", dir, err)
	}
	versionHash := "none" // a source tree of the development branch has none
	if data, err := os.ReadFile(filepath.Join(dir, "VERSION")); err == nil {
		sum := sha256.Sum256(data)
		versionHash = hex.EncodeToString(sum[:8])
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Location{}, err
	}
	identity := fmt.Sprintf("%s; bin/go %d bytes of %s; VERSION %s", says, goCmd.Size(), goCmd.ModTime().UTC().Format(time.RFC3339Nano), versionHash)
	return Location{Dir: dir, Identity: identity}, nil
}

// Directory provides artifacts that were put on this machine, or on a file system mounted there, by other means. They are
// used in place.
//
// Parameters: "path.<tag>" is the directory of that tag; "path" is the directory of all others and may contain {tag} and
// {target}. One of them is required.
//
// The identity ("files:…") is a hash of names, sizes, modes and modification times of all files: it changes when any file is
// rewritten, and two copies of the same content have the same identity only if their times were preserved.
type Directory struct{}

// Name returns "directory".
func (Directory) Name() string { return "directory" }

// Resolve reduces the parameters to the one path of the tag.
func (Directory) Resolve(req Request) (Request, error) {
	if err := req.onlyParameters("path", "path."); err != nil {
		return Request{}, err
	}
	return resolvePath(req)
}

// Locate checks that the directory exists and is not empty.
func (Directory) Locate(_ context.Context, req Request, progress ProgressFunc) (Location, error) {
	dir := req.Parameters["path"]
	progress(Progress{Step: "checking " + dir})
	if err := checkDir(req, dir); err != nil {
		return Location{}, err
	}
	identity, err := filesIdentity(dir)
	if err != nil {
		return Location{}, fmt.Errorf("reading %s: %w", dir, err)
	}
	if identity == "" {
		return Location{}, &Error{Kind: NotFound, Artifact: req.String(), Reason: dir + " is empty", Remedy: "unpack the artifact there"}
	}
	return Location{Dir: dir, Identity: identity}, nil
}

// resolvePath replaces the parameters path and path.<tag> by the expanded path.
func resolvePath(req Request) (Request, error) {
	template := req.Parameters["path."+req.Tag]
	if template == "" {
		template = req.Parameters["path"]
	}
	if template == "" {
		return Request{}, req.invalid("no directory given", `set the parameter "path", for example to /srv/builds/{tag}`)
	}
	if err := req.checkTemplate(template); err != nil {
		return Request{}, err
	}
	path := filepath.Clean(req.expand(template, func(s string) string { return s }))
	if !filepath.IsAbs(path) {
		return Request{}, req.invalid("the path "+path+" is not absolute", "collectors have no common working directory: write the whole path")
	}
	return inPlaceRequest(req, path)
}

// inPlaceRequest returns the canonical form of a request for a directory; it refuses a path with braces, which would be
// expanded again.
func inPlaceRequest(req Request, path string) (Request, error) {
	if strings.Contains(path, "{tag}") || strings.Contains(path, "{target}") {
		return Request{}, req.invalid("the path "+path+" contains a placeholder after its expansion", "rename the directory or the tag")
	}
	return Request{Provider: req.Provider, Tag: req.Tag, Parameters: map[string]string{"path": path}}, nil
}

func checkDir(req Request, dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Kind: NotFound, Artifact: req.String(), Reason: "no directory " + dir + " on this machine",
			Remedy: "put the artifact there, or correct the path"}
	case err != nil:
		return err
	case !info.IsDir():
		return &Error{Kind: NotFound, Artifact: req.String(), Reason: dir + " is not a directory",
			Remedy: "unpack it, and name the directory"}
	}
	return nil
}

// filesIdentity returns the identity of a directory; empty if it has no files.
func filesIdentity(dir string) (string, error) {
	hash := sha256.New()
	files := 0
	// The directory itself may be a symbolic link, which WalkDir would not follow.
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	err = filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(real, path)
		if err != nil {
			return err
		}
		target := ""
		if d.Type()&fs.ModeSymlink != 0 {
			if target, err = os.Readlink(path); err != nil {
				return err
			}
		}
		files++
		_, err = fmt.Fprintf(hash, "%q %d %s %d %q\n", filepath.ToSlash(name), info.Size(), info.Mode(), info.ModTime().UnixNano(), target)
		return err
	})
	if err != nil || files == 0 {
		return "", err
	}
	return "files:" + hex.EncodeToString(hash.Sum(nil)), nil
}
