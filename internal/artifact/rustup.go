package artifact

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Rustup provides Rust toolchains managed by rustup, used in place: the artifact is the toolchain's sysroot, which contains
// bin/rustc and, if installed, bin/cargo. Tags are rustup's toolchain names, such as "1.80.0", "nightly-2025-01-31" or the
// name of a linked custom toolchain; a target is appended unless the tag ends with it.
//
// Parameter: "install" is "true" to install missing toolchains with the minimal profile; otherwise they are [NotFound].
//
// The identity is the compiler's release, commit and host. Channel names ("stable", "nightly") mean another toolchain after
// each update: use versions or dates to keep results comparable.
type Rustup struct {
	// Command is the path of rustup; empty means "rustup" on PATH.
	Command string
	// Env has additional settings ("RUSTUP_HOME=…"), which override the environment of the process.
	Env []string
}

// Name returns "rustup".
func (*Rustup) Name() string { return "rustup" }

// Resolve refuses tags that cannot be the name of a toolchain.
func (*Rustup) Resolve(req Request) (Request, error) {
	if err := req.onlyParameters("install"); err != nil {
		return Request{}, err
	}
	for _, s := range []string{req.Tag, req.Target} {
		if strings.HasPrefix(s, "-") || strings.ContainsAny(s, "/\\ \t\n") {
			return Request{}, req.invalid("not the name of a Rust toolchain", "name one that rustup knows, such as 1.80.0 or nightly-2025-01-31")
		}
	}
	resolved := Request{Provider: req.Provider, Tag: req.Tag, Target: req.Target}
	switch install := req.Parameters["install"]; install {
	case "", "false":
	case "true":
		resolved.Parameters = map[string]string{"install": "true"}
	default:
		return Request{}, req.invalid(fmt.Sprintf("parameter install is %q", install), `use "true" or "false"`)
	}
	return resolved, nil
}

// Toolchains returns the full names of the installed toolchains, such as "stable-x86_64-unknown-linux-gnu".
func (r *Rustup) Toolchains(ctx context.Context) ([]string, error) {
	out, err := r.run(ctx, "installed Rust toolchains", "toolchain", "list")
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(out) {
		// "stable-x86_64-unknown-linux-gnu (active, default)"; without any: "no installed toolchains"
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "" && (rest == "" || strings.HasPrefix(rest, "(")) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Locate finds the toolchain's sysroot and asks its compiler for its version.
func (r *Rustup) Locate(ctx context.Context, req Request, progress ProgressFunc) (Location, error) {
	progress(Progress{Step: "asking rustup for " + req.String()})
	installed, err := r.Toolchains(ctx)
	if err != nil {
		return Location{}, err
	}
	name := toolchainName(req, installed)
	rustc, err := r.run(ctx, req.String(), "which", "--toolchain", name, "rustc")
	if KindOf(err) == NotFound && req.Parameters["install"] == "true" {
		progress(Progress{Step: "installing " + req.String()})
		if _, err := r.run(ctx, req.String(), "toolchain", "install", "--profile", "minimal", "--no-self-update", name); err != nil {
			return Location{}, err
		}
		rustc, err = r.run(ctx, req.String(), "which", "--toolchain", name, "rustc")
	}
	if err != nil {
		return Location{}, err
	}
	rustc = strings.TrimSpace(rustc)
	says, err := command{path: rustc, args: []string{"-vV"}, env: r.environment()}.run(ctx)
	if err != nil {
		return Location{}, fmt.Errorf("asking the compiler of %s what it is: %w", req, err)
	}
	identity, err := rustcIdentity(says)
	if err != nil {
		return Location{}, fmt.Errorf("asking the compiler of %s what it is: %w", req, err)
	}
	return Location{Dir: filepath.Dir(filepath.Dir(rustc)), Identity: identity}, nil
}

// toolchainName returns rustup's name of the toolchain. Rustup completes names without a target by its host.
func toolchainName(req Request, installed []string) string {
	if req.Target == "" || strings.HasSuffix(req.Tag, "-"+req.Target) || slices.Contains(installed, req.Tag) {
		return req.Tag
	}
	return req.Tag + "-" + req.Target
}

// rustcIdentity derives the identity from the output of rustc -vV, lines of "name: value" after the first.
func rustcIdentity(says string) (string, error) {
	values := map[string]string{}
	for line := range strings.Lines(says) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			values[name] = value
		}
	}
	if values["release"] == "" || values["host"] == "" {
		return "", fmt.Errorf("it does not name its release and host: %q", says)
	}
	return fmt.Sprintf("rustc %s %s %s", values["release"], values["commit-hash"], values["host"]), nil
}

func (r *Rustup) environment() []string {
	// Backtraces of rustup would drown its messages; asking for a toolchain must not install it silently.
	return slices.Concat(inherited(), []string{"RUST_BACKTRACE=0", "RUSTUP_AUTO_INSTALL=0"}, r.Env)
}

func (r *Rustup) run(ctx context.Context, what string, args ...string) (string, error) {
	path, err := lookPath(r.Command, "rustup", what, "install rustup on this machine, or set its path")
	if err != nil {
		return "", err
	}
	out, err := command{path: path, args: args, env: r.environment()}.run(ctx)
	if failed, ok := errors.AsType[*commandError](err); ok && KindOf(err) != Cancelled {
		return "", classifyRustupError(what, failed.reason())
	}
	return out, err
}

// classifyRustupError classifies a message of rustup, which has no error codes. The texts are those of rustup 1.27 to 1.29.
func classifyRustupError(what, message string) error {
	has := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(message, text) })
	}
	e := &Error{Artifact: what, Err: errors.New(oneLine(message))}
	switch {
	case has("No space left on device", "os error 28", "not enough space"):
		e.Kind, e.Reason, e.Remedy = DiskFull, "no space left for the toolchain", "free space on the file system of rustup's home directory"
	case has("checksum failed", "failed to verify"):
		e.Kind, e.Reason, e.Remedy = Corrupt, "the download does not match its checksum", "find out who changed it on its way"
	case has("nonexistent rust version", "no release found", "not installable", "status code: 404", "does not support components", "is unavailable for download"):
		e.Kind, e.Reason, e.Remedy = NotFound, "no such Rust release", "look the release up at https://releases.rs"
	case has("invalid toolchain name"):
		e.Kind, e.Reason, e.Remedy = Invalid, "not the name of a Rust toolchain", "name one such as 1.80.0 or nightly-2025-01-31"
	case has("may not be able to run on this system"):
		e.Kind, e.Reason, e.Remedy = Invalid, "made for another kind of machine", "name the target of the machine, or none"
	case has("' is not installed"):
		e.Kind, e.Reason = NotFound, "not installed on this machine"
		e.Remedy = "install it with rustup toolchain install --profile minimal, or set the parameter install to \"true\""
	case has("could not download"):
		e.Kind, e.Reason, e.Remedy = Unavailable, "the download failed", "check the network of this machine and RUSTUP_DIST_SERVER"
	default:
		e.Kind, e.Reason = Unclassified, "rustup failed"
	}
	return e
}
