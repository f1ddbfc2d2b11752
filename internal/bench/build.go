package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// BuildProvider is the artifact provider whose artifacts are built from
// revisions of a repository, by jobs of [KindBuild].
const BuildProvider = "build"

// DefaultBuildTimeout bounds a build command that names no timeout.
const DefaultBuildTimeout = 30 * time.Minute

// maxBuildTimeout is below the bound of a whole job, 24 hours.
const maxBuildTimeout = 12 * time.Hour

// BuildKey identifies a build: a hash of its inputs, 64 hexadecimal digits.
type BuildKey string

// ParseBuildKey reads a build's key.
func ParseBuildKey(s string) (BuildKey, error) {
	if len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
		return "", invalid("build", s, "a build's key is 64 hexadecimal digits")
	}
	return BuildKey(s), nil
}

// BuildRecipe describes how artifacts are built. It is read from the parameters of
// the provider build.
type BuildRecipe struct {
	// Repository is an absolute path or a URL of a git repository.
	Repository string `json:"repository"`
	// Command is run in an export of the revision's tree, without a shell.
	Command []string `json:"command"`
	// Env is added to the short, fixed environment of every command, as
	// NAME=value, sorted.
	Env []string `json:"env,omitempty"`
	// PassEnv names variables of the collector's environment that the command
	// may see, sorted. Their values are not part of the build's identity.
	PassEnv []string `json:"pass_env,omitempty"`
	// Output is the file or directory that becomes the artifact, relative to the
	// tree and slash-separated; "." is the whole tree after the build.
	Output string `json:"output"`
	// TimeoutSeconds bounds the command. It is not part of the build's identity.
	TimeoutSeconds int `json:"timeout_seconds"`
}

// BuildSpec describes one build: a recipe and the tree it is applied to.
type BuildSpec struct {
	Key    BuildKey `json:"key"`
	Tag    string   `json:"tag"`
	Target Target   `json:"target"`
	// Commit and Tree are git's names of the revision and of its content.
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	BuildRecipe
}

var (
	envName     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	objectName  = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	secretNames = []string{"BENCHLOOM_", "TEMPORAL_", "DATABASE_", "PG"}
)

// ParseBuildRecipe reads the parameters of the provider build: repository and
// command are required; output, timeout, pass_env and env.NAME may be given.
// {tag} and {target} are replaced in repository only, so that equal trees give equal
// builds. Command is a JSON array of arguments or words separated by spaces; it is
// never given to a shell.
func ParseBuildRecipe(parameters map[string]string, tag string, target Target) (BuildRecipe, error) {
	r := BuildRecipe{Output: ".", TimeoutSeconds: int(DefaultBuildTimeout / time.Second)}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		value := parameters[name]
		if !plainText(value) {
			return BuildRecipe{}, invalid("parameter "+name, value, "use text (UTF-8 without zero bytes)")
		}
		var err error
		switch name {
		case "repository":
			r.Repository = strings.NewReplacer("{tag}", tag, "{target}", string(target)).Replace(value)
		case "command":
			r.Command, err = words("command", value)
		case "output":
			r.Output, err = outputPath(value)
		case "timeout":
			r.TimeoutSeconds, err = buildTimeout(value)
		case "pass_env":
			r.PassEnv, err = passEnv(value)
		default:
			variable, ok := strings.CutPrefix(name, "env.")
			if !ok {
				return BuildRecipe{}, invalid("parameter of the provider build", name, "it knows repository, command, output, timeout, pass_env and env.NAME")
			}
			if !envName.MatchString(variable) {
				return BuildRecipe{}, invalid("environment variable", variable, "use letters, digits and '_', not beginning with a digit")
			}
			r.Env = append(r.Env, variable+"="+value) // sorted by name already
		}
		if err != nil {
			return BuildRecipe{}, err
		}
	}
	return r, r.check()
}

func (r BuildRecipe) check() error {
	switch {
	case r.Repository == "":
		return invalid("repository", "", "set the parameter repository to the path or URL of a git repository")
	case withoutSecret("repository", r.Repository) != nil:
		return withoutSecret("repository", r.Repository)
	case strings.HasPrefix(r.Repository, "-") || strings.Contains(r.Repository, "\n"):
		return invalid("repository", r.Repository, "write an absolute path or a URL")
	case !strings.HasPrefix(r.Repository, "/") && !remoteRepository(r.Repository):
		return invalid("repository", r.Repository, "write an absolute path or a URL: collectors have no common working directory")
	case len(r.Command) == 0 || r.Command[0] == "":
		return invalid("command", "", "set the parameter command to the build's program and arguments")
	}
	return nil
}

// remoteRepository reports whether s is a URL or, for ssh, host:path. The transport
// ext is excluded because it runs commands.
func remoteRepository(s string) bool {
	scheme, rest, ok := strings.Cut(s, "://")
	if ok {
		return rest != "" && slices.Contains([]string{"https", "http", "ssh", "git", "file"}, scheme)
	}
	host, file, ok := strings.Cut(s, ":")
	return ok && host != "" && file != "" && !strings.ContainsAny(host, "/") && !strings.HasPrefix(file, ":")
}

// plainText reports whether every database and process accepts s unchanged.
func plainText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// words reads a JSON array of strings, or words separated by spaces.
func words(what, value string) ([]string, error) {
	value = strings.TrimSpace(value)
	if strings.HasPrefix(value, "[") {
		var list []string
		if err := json.Unmarshal([]byte(value), &list); err != nil {
			return nil, invalid(what, value, "write a list of words, such as [make, all]")
		}
		if !plainText(strings.Join(list, "")) {
			return nil, invalid(what, value, "no word may hold a zero byte")
		}
		return list, nil
	}
	if strings.ContainsAny(value, "\"'`$\\|&;<>()*?") {
		return nil, invalid(what, value, `there is no shell: write a list of words, such as [sh, -c, "make && make check"]`)
	}
	return strings.Fields(value), nil
}

func outputPath(value string) (string, error) {
	clean := path.Clean(value)
	if value == "" || path.IsAbs(value) || clean == ".." || strings.HasPrefix(clean, "../") || strings.Contains(value, "\\") {
		return "", invalid("output", value, "name a file or directory of the built tree, relative to it")
	}
	return clean, nil
}

func buildTimeout(value string) (int, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < time.Second || d > maxBuildTimeout {
		return 0, invalid("timeout", value, "use a duration from 1s to 12h, such as 20m")
	}
	return int(d.Round(time.Second) / time.Second), nil
}

func passEnv(value string) ([]string, error) {
	names, err := words("pass_env", value)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !envName.MatchString(name) {
			return nil, invalid("environment variable", name, "use letters, digits and '_', not beginning with a digit")
		}
		for _, prefix := range secretNames {
			if strings.HasPrefix(strings.ToUpper(name), prefix) {
				return nil, invalid("environment variable", name, "variables that begin with "+strings.Join(secretNames, ", ")+" are the collector's own and are never passed")
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Hash identifies the recipe applied to a target, independent of the revision.
func (r BuildRecipe) Hash(target Target) string { return hashOf(r, target) }

// Spec returns the recipe applied to a revision of a project. Equal trees give equal
// keys, whatever repository, tag or commit they come from. The error wraps
// [ErrInvalid] unless commit and tree are full hashes.
func (r BuildRecipe) Spec(project, tag string, target Target, commit, tree string) (BuildSpec, error) {
	for _, name := range []string{commit, tree} {
		if !objectName.MatchString(name) {
			return BuildSpec{}, invalid("git object", name, "a commit or tree is named by its full hash")
		}
	}
	identity := r
	identity.Repository, identity.TimeoutSeconds = "", 0
	return BuildSpec{
		Key: BuildKey(hashOf(project, tree, target, identity)), Tag: tag, Target: target, Commit: commit, Tree: tree, BuildRecipe: r,
	}, nil
}

// checkBuild refuses invalid parameters of the provider build.
func (s ArtifactSource) checkBuild() error {
	sources := []TagSource{{Provider: s.Provider, Parameters: s.Parameters}}
	for _, tag := range slices.Sorted(maps.Keys(s.Tags)) {
		sources = append(sources, s.Tags[tag])
	}
	for _, source := range sources {
		if source.Provider != BuildProvider {
			continue
		}
		if _, err := ParseBuildRecipe(source.Parameters, "tag", ""); err != nil {
			return fmt.Errorf("artifacts: %w", err)
		}
	}
	return nil
}

// Timeout returns the time limit of the command.
func (r BuildRecipe) Timeout() time.Duration { return time.Duration(r.TimeoutSeconds) * time.Second }

// String names the build for people.
func (s BuildSpec) String() string {
	return fmt.Sprintf("%s (commit %.12s) for %s", s.Tag, s.Commit, s.Target)
}

// hashOf returns the SHA-256 of values as JSON, in hexadecimal.
func hashOf(values ...any) string {
	text, err := json.Marshal(values)
	if err != nil {
		panic(fmt.Sprintf("bench: encoding a build's identity: %v", err)) // plain strings and numbers: cannot happen
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
