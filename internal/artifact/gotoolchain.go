package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	goToolchainModule = "golang.org/toolchain"
	goVersionsRemedy  = "list its versions with: go list -m -versions " + goToolchainModule
)

// GoToolchain provides Go releases by version: tag "1.25.3" or "go1.25.3", also betas and release candidates ("1.26rc1").
// The artifact is a GOROOT, its identity the module's sum ("h1:…"). It has no parameters.
//
// The go command downloads the module golang.org/toolchain with the user's own settings, such as GOPROXY, so this works
// wherever Go modules work. The go command verifies toolchains against the checksum database, and does so even where
// GONOSUMDB or GOSUMDB=off exempt other modules (unless GOPROXY is a single file:// URL); a mismatch is of kind [Corrupt].
// The download uses a temporary module cache: the user's module cache is not filled with toolchains of 250 MB each, and
// cleaning it cannot disturb a running benchmark.
type GoToolchain struct {
	// Command is the path of the go command (1.21 or newer); empty means "go" on PATH.
	Command string
	// Env has additional settings ("GOPROXY=…"), which override the environment of the process.
	Env []string
}

// Name returns "go-toolchain".
func (*GoToolchain) Name() string { return "go-toolchain" }

var goReleasePattern = regexp.MustCompile(`^1(\.\d+){1,2}((beta|rc)\d+)?$`)

// Resolve normalises the tag to "1.25.3" and the target to "linux/amd64".
func (*GoToolchain) Resolve(req Request) (Request, error) {
	if err := req.onlyParameters(); err != nil {
		return Request{}, err
	}
	release := strings.TrimPrefix(req.Tag, "go")
	if !goReleasePattern.MatchString(release) || !version.IsValid("go"+release) {
		return Request{}, req.invalid("not a Go release", "name one, such as 1.25.3 or 1.26rc1; for other builds of Go use the provider goroot, directory or url")
	}
	if version.Compare("go"+release, "go1.21") >= 0 && version.Lang("go"+release) == "go"+release {
		return Request{}, req.invalid("a version of the language, not a release", "the first release of it is "+release+".0")
	}
	platform, err := ParseGoPlatform(req.Target)
	if err != nil {
		return Request{}, req.invalid(err.Error(), `name a target such as "x86_64-unknown-linux-gnu"`)
	}
	return Request{Provider: req.Provider, Tag: release, Target: platform.String()}, nil
}

// Fetch downloads, verifies and unpacks the toolchain.
func (g *GoToolchain) Fetch(ctx context.Context, req Request, dir string, progress ProgressFunc) (string, error) {
	name := "go " + req.Tag + " for " + req.Target
	platform, err := ParseGoPlatform(req.Target)
	if err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp(dir, ".fetch-")
	if err != nil {
		return "", err
	}
	defer func() { _ = removeTree(scratch) }() // below the entry's own temporary directory, which goes too
	module, err := g.download(ctx, req.Tag, platform, scratch, progress)
	if err != nil {
		return "", err
	}
	if err := promote(module.Dir, dir); err != nil {
		return "", err
	}
	if err := removeTree(scratch); err != nil {
		return "", err
	}
	if err := restoreGoTree(dir); err != nil {
		return "", fmt.Errorf("preparing %s: %w", name, err)
	}
	progress(Progress{Step: "checking " + name})
	if err := checkGoTree(ctx, dir, req.Tag, platform); err != nil {
		return "", &Error{Kind: Corrupt, Artifact: name, Reason: "the downloaded toolchain does not work", Err: err}
	}
	return module.Sum, nil
}

// goModule is the output of "go mod download -json".
type goModule struct {
	Dir   string
	Sum   string
	Error string
}

func (g *GoToolchain) download(ctx context.Context, release string, platform GoPlatform, scratch string, progress ProgressFunc) (goModule, error) {
	name := "go " + release + " for " + platform.String()
	moduleVersion := fmt.Sprintf("v0.0.1-go%s.%s-%s", release, platform.OS, platform.Arch)
	step := "downloading and unpacking " + name
	stop := watchSize(scratch, func(size int64) { progress(Progress{Step: step, Done: size}) })
	out, err := g.run(ctx, name, scratch, "mod", "download", "-modcacherw", "-json", goToolchainModule+"@"+moduleVersion)
	stop()
	var module goModule
	// A failed download is reported in the JSON, anything else on standard error.
	if jsonErr := json.Unmarshal([]byte(out), &module); jsonErr == nil && module.Error != "" {
		return goModule{}, classifyGoError(name, module.Error)
	} else if err != nil {
		return goModule{}, classifyGoFailure(name, err)
	} else if jsonErr != nil {
		return goModule{}, fmt.Errorf("reading what go mod download printed for %s: %w", name, jsonErr)
	}
	return module, nil
}

// run runs the go command in scratch with the user's settings, but with a separate module cache and checksum database state.
func (g *GoToolchain) run(ctx context.Context, name, scratch string, args ...string) (string, error) {
	path, err := lookPath(g.Command, "go", name, "install Go 1.21 or newer on this machine, or set the path of its go command")
	if err != nil {
		return "", err
	}
	work := filepath.Join(scratch, "work") // outside any module
	if err := os.Mkdir(work, 0o755); err != nil {
		return "", err
	}
	env := slices.Concat(inherited(), g.Env, []string{
		"GOTOOLCHAIN=local", "GO111MODULE=on", "GOWORK=off",
		"GOPATH=" + filepath.Join(scratch, "gopath"), "GOMODCACHE=" + filepath.Join(scratch, "modcache"),
	})
	return command{path: path, args: args, dir: work, env: env}.run(ctx)
}

// watchSize reports the total size of the files below dir every second until stop is called.
func watchSize(dir string, report func(int64)) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				// Files come and go while the tree is walked; the next tick counts again.
				if size, err := treeSize(dir); err == nil {
					report(size)
				}
			}
		}
	}()
	return func() { close(done); <-ended }
}

// classifyGoFailure applies classifyGoError to the error of a failed go command; it returns other errors unchanged.
func classifyGoFailure(name string, err error) error {
	if failed, ok := errors.AsType[*commandError](err); ok && KindOf(err) != Cancelled {
		return classifyGoError(name, failed.reason())
	}
	return err
}

// classifyGoError classifies a message of the go command, which has no error codes. The texts are those of
// cmd/go/internal/modfetch and golang.org/x/mod since Go 1.21.
func classifyGoError(name, message string) error {
	has := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(message, text) })
	}
	e := &Error{Artifact: name, Err: errors.New(oneLine(message))}
	switch {
	case has("no space left on device", "disk quota exceeded", "There is not enough space on the disk"):
		e.Kind, e.Reason = DiskFull, "no space left for the download"
	case has("SECURITY ERROR", "checksum mismatch", "not a valid zip file", "has unexpected file", "zip: "):
		e.Kind, e.Reason = Corrupt, "the download does not match the checksum database"
		e.Remedy = "find out who changed it on its way: the module proxy, or something between it and this machine"
	case has("GOPROXY=off"):
		e.Kind, e.Reason, e.Remedy = NotFound, "downloads are switched off", "set GOPROXY to a module proxy; 'go env -u GOPROXY' goes back to the default one"
	case has("GOSUMDB=off", "checksum database disabled"):
		e.Kind, e.Reason, e.Remedy = NotFound, "toolchains cannot be verified", "unset GOSUMDB"
	case has("403 Forbidden", "401 Unauthorized"):
		e.Kind, e.Reason = NotFound, "refused by the module proxy"
		e.Remedy = goVersionsRemedy
	case has("404 Not Found", "410 Gone", "no such file or directory", "cannot find the file", "cannot find the path",
		"unknown revision", "unrecognized import path"):
		e.Kind, e.Reason, e.Remedy = NotFound, "not found by the module proxy", goVersionsRemedy
	default:
		e.Kind, e.Reason, e.Remedy = Unavailable, "the download failed", "check GOPROXY and the network of this machine"
	}
	return e
}

// restoreGoTree restores what a module zip cannot contain: permissions and nested go.mod files. The rules are those of
// cmd/go/internal/toolchain.Exec.
func restoreGoTree(dir string) error {
	for _, sub := range []string{"bin", "pkg/tool", "lib"} {
		root := filepath.Join(dir, filepath.FromSlash(sub))
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && path == root {
				return nil
			}
			if err != nil || d.IsDir() {
				return err
			}
			if runnable, err := filepath.Match("go_?*_?*_exec", d.Name()); err != nil || sub == "lib" && !runnable {
				return err
			}
			return os.Chmod(path, 0o755)
		})
		if err != nil {
			return err
		}
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "_go.mod" || !d.Type().IsRegular() {
			return err
		}
		// A copy, not a rename: cmd/go restores go.mod again unless both are there with the same size.
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(filepath.Dir(path), "go.mod"), data, 0o644)
	})
}

// checkGoTree checks that dir is the GOROOT of the release. If it is for this machine, it runs its go command.
func checkGoTree(ctx context.Context, dir, release string, platform GoPlatform) error {
	data, err := os.ReadFile(filepath.Join(dir, "VERSION"))
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(data), "\n")
	if strings.TrimSpace(first) != "go"+release {
		return fmt.Errorf("VERSION says %q", first)
	}
	if !platform.isHost() {
		return nil
	}
	says, err := goVersion(ctx, dir)
	if err != nil {
		return err
	}
	if want := "go version go" + release + " " + platform.String(); says != want {
		return fmt.Errorf("it calls itself %q, not %q", says, want)
	}
	return nil
}

// goVersion runs "go version" of a GOROOT. No setting of the user may switch it to another toolchain or be unknown to an old
// release.
func goVersion(ctx context.Context, goroot string) (string, error) {
	env := append(inherited(), "GOROOT="+goroot, "GOTOOLCHAIN=local", "GOENV=off", "GOFLAGS=", "GOEXPERIMENT=")
	out, err := command{path: goCommand(goroot), args: []string{"version"}, dir: goroot, env: env}.run(ctx)
	return strings.TrimSpace(out), err
}

func goCommand(goroot string) string {
	name := "go"
	if runtime.GOOS == "windows" {
		name = "go.exe"
	}
	return filepath.Join(goroot, "bin", name)
}

// Releases returns the versions for the target that the module proxy lists, such as "1.25.3", the oldest first. Proxies list
// only versions that were requested before, so a release can exist without being listed; see also LatestPatch.
func (g *GoToolchain) Releases(ctx context.Context, target string) ([]string, error) {
	platform, err := ParseGoPlatform(target)
	if err != nil {
		return nil, err
	}
	out, err := g.scratchRun(ctx, "list of Go releases", "list", "-m", "-versions", goToolchainModule)
	if err != nil {
		return nil, err
	}
	suffix := "." + platform.OS + "-" + platform.Arch
	var releases []string
	for word := range strings.FieldsSeq(out) {
		if v, ok := strings.CutPrefix(word, "v0.0.1-go"); ok {
			if release, ok := strings.CutSuffix(v, suffix); ok && version.IsValid("go"+release) {
				releases = append(releases, release)
			}
		}
	}
	slices.SortFunc(releases, func(a, b string) int { return version.Compare("go"+a, "go"+b) })
	return releases, nil
}

// LatestPatch returns the newest release of a minor version for the target: "1.25.14" for "1.25". It starts from the newest listed
// one (see Releases) and asks the proxy for its successors. Betas and release candidates do not count. An error of kind
// [NotFound] means that the minor version has no release for the target.
func (g *GoToolchain) LatestPatch(ctx context.Context, minor, target string) (string, error) {
	minor = strings.TrimPrefix(minor, "go")
	name := "latest release of go " + minor
	if !regexp.MustCompile(`^1\.\d+$`).MatchString(minor) {
		return "", &Error{Kind: Invalid, Artifact: name, Reason: "not a minor version", Remedy: "name one, such as 1.25"}
	}
	platform, err := ParseGoPlatform(target)
	if err != nil {
		return "", &Error{Kind: Invalid, Artifact: name, Reason: err.Error()}
	}
	releases, err := g.Releases(ctx, target)
	if err != nil {
		return "", err
	}
	latest, next := "", 0
	if version.Compare("go"+minor, "go1.21") < 0 {
		next = 1 // until Go 1.20 the first release had no patch number
	}
	for _, release := range releases {
		patch, isPatch := strings.CutPrefix(release, minor+".")
		if n, err := strconv.Atoi(patch); isPatch && err == nil {
			latest, next = release, n+1
		} else if release == minor {
			latest, next = release, 1
		}
	}
	for ; ; next++ {
		candidate := fmt.Sprintf("%s.%d", minor, next)
		query := fmt.Sprintf("%s@v0.0.1-go%s.%s-%s", goToolchainModule, candidate, platform.OS, platform.Arch)
		_, err := g.scratchRun(ctx, name+" for "+platform.String(), "list", "-m", query)
		switch {
		case err == nil:
			latest = candidate
		case KindOf(err) == NotFound && latest != "":
			return latest, nil
		default:
			return "", err
		}
	}
}

func (g *GoToolchain) scratchRun(ctx context.Context, name string, args ...string) (out string, err error) {
	scratch, err := os.MkdirTemp("", "benchloom-go-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, removeTree(scratch)) }()
	out, err = g.run(ctx, name, scratch, args...)
	return out, classifyGoFailure(name, err)
}
