package bench

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// CommitSource is the source of a project's commits and releases. Without a
// repository there is none, and only people and CI make requests.
type CommitSource struct {
	Git    string `json:"git,omitempty" yaml:"git" doc:"Repository: an absolute path on the orchestrator's machine, or a URL that git can fetch."`
	Branch string `json:"branch,omitempty" yaml:"branch" doc:"Branch whose first-parent history is followed; empty: main."`
	// LookBack bounds how far back commits are recorded and requested.
	LookBack LookBack `json:"look_back,omitzero" yaml:"look_back"`
	// Releases is a pattern in which * matches anything but a slash.
	Releases string `json:"releases,omitempty" yaml:"releases" doc:"Pattern of the tags that are releases, such as v*; empty: no tag is."`
	Every    string `json:"every,omitempty" yaml:"every" doc:"Pause between two looks, such as 30s or 5m; empty: 1m."`
	// Backfill is the number of newest commits, and of newest releases, that the first
	// look requests; later looks request all new ones.
	Backfill    *int   `json:"backfill,omitempty" yaml:"backfill" minimum:"0" maximum:"10000" doc:"Newest commits, and newest releases, that the first look requests, within look_back; unset: all in look_back."`
	Definitions string `json:"definitions,omitempty" yaml:"definitions" doc:"Folder of graph templates in the repository, such as ci/graphs: the project gets those of the branch's newest commit whenever they change; empty: none."`
	// Web may be given without a repository: then only links lead there.
	Web WebLinks `json:"web,omitzero" yaml:"web" doc:"Where commits, differences and pull requests are read on the web."`
}

// LookBack bounds the part of a branch's history that counts.
type LookBack struct {
	Commits int `json:"commits,omitempty" yaml:"commits" minimum:"0" maximum:"10000" doc:"Commits, the newest included; 0: 100."`
	Days    int `json:"days,omitempty" yaml:"days" minimum:"0" maximum:"36500" doc:"Age in days, by the date of the commit; 0: 29."`
}

// Defaults and limits. The look-back in days and the pause are those of the request
// life cycle that Benchloom follows.
const (
	defaultBranch          = "main"
	defaultLookBackCommits = 100
	defaultLookBackDays    = 29
	defaultEvery           = time.Minute

	maxLookBackCommits = 10_000
	maxLookBackDays    = 36_500
	minEvery, maxEvery = 5 * time.Second, 24 * time.Hour
)

// Configured reports whether there is a source.
func (s CommitSource) Configured() bool { return s.Git != "" }

// BranchName returns the branch that is followed.
func (s CommitSource) BranchName() string {
	if s.Branch == "" {
		return defaultBranch
	}
	return s.Branch
}

// Interval returns the pause between two looks.
func (s CommitSource) Interval() time.Duration {
	d, err := time.ParseDuration(s.Every)
	if err != nil || d <= 0 {
		return defaultEvery
	}
	return d
}

// FirstRequests returns the number of newest commits that the first look requests: by
// default all within the look-back.
func (s CommitSource) FirstRequests() int {
	if s.Backfill == nil {
		return s.LookBack.Limit()
	}
	return *s.Backfill
}

// Limit returns the number of commits that count, the newest included.
func (l LookBack) Limit() int {
	if l.Commits == 0 {
		return defaultLookBackCommits
	}
	return l.Commits
}

// Since returns the date before which commits do not count.
func (l LookBack) Since(now time.Time) time.Time {
	days := l.Days
	if days == 0 {
		days = defaultLookBackDays
	}
	return now.AddDate(0, 0, -days)
}

// Check refuses an invalid source.
func (s CommitSource) Check() error {
	if err := s.Web.Check(); err != nil {
		return err
	}
	if !s.Configured() {
		if s != (CommitSource{Web: s.Web}) {
			return invalid("source.git", "", "name the repository: an absolute path, or a URL that git can fetch")
		}
		return nil
	}
	if err := checkRepository(s.Git); err != nil {
		return err
	}
	if !branchLike(s.BranchName()) {
		return invalid("source.branch", s.Branch, "write a branch's name as 'git branch' shows it, such as main")
	}
	if _, err := path.Match(s.Releases, ""); err != nil || strings.ContainsAny(s.Releases, "\x00\n ") {
		return invalid("source.releases", s.Releases, "write a pattern of tags such as v* or v[0-9]*")
	}
	if s.Every != "" {
		if d, err := time.ParseDuration(s.Every); err != nil || d < minEvery || d > maxEvery {
			return invalid("source.every", s.Every, "write a duration from 5s to 24h, such as 1m")
		}
	}
	if d := s.Definitions; d != "" && (path.IsAbs(d) || path.Clean(d) != d || strings.HasPrefix(d, "..") || strings.ContainsAny(d, "\x00\\\n")) {
		return invalid("source.definitions", d, "write the folder's path within the repository, such as ci/graphs, or . for its root")
	}
	for _, n := range []struct {
		name      string
		value     int
		from, top int
	}{
		{"source.look_back.commits", s.LookBack.Commits, 0, maxLookBackCommits},
		{"source.look_back.days", s.LookBack.Days, 0, maxLookBackDays},
		{"source.backfill", s.FirstRequests(), 0, maxLookBackCommits},
	} {
		if n.value < n.from || n.value > n.top {
			return invalid(n.name, fmt.Sprint(n.value), fmt.Sprintf("use %d to %d, or leave it out", n.from, n.top))
		}
	}
	return nil
}

// checkRepository accepts absolute paths, host:path for ssh, and URLs of protocols
// that git fetches without running programs of the repository's choice. It refuses
// passwords, since everybody who may read a project may read its configuration.
func checkRepository(s string) error {
	const kind = "source.git"
	if strings.ContainsAny(s, "\x00\r\n") || strings.HasPrefix(s, "-") || strings.Contains(s, "::") {
		return invalid(kind, s, "write an absolute path, or an https, http, ssh, git or file URL")
	}
	if strings.HasPrefix(s, "/") {
		return nil
	}
	if !strings.Contains(s, "://") {
		host, _, ok := strings.Cut(s, ":")
		if !ok || host == "" || strings.Contains(host, "/") {
			return invalid(kind, s, "write an absolute path on the orchestrator's machine, or a URL: a relative path means nothing there")
		}
		return nil
	}
	scheme, rest, _ := strings.Cut(s, "://")
	authority, location, _ := strings.Cut(rest, "/")
	user, host := "", authority
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		user, host = authority[:at], authority[at+1:]
	}
	shown := scheme + "://" + host + "/" + location // without what may be a secret
	switch scheme {
	case "https", "http", "ssh", "git":
		if host == "" || strings.HasPrefix(host, "-") || strings.HasPrefix(user, "-") {
			return invalid(kind, shown, "the URL names no host")
		}
	case "file":
		if authority != "" && authority != "localhost" {
			return invalid(kind, shown, "a file URL names an absolute path on the orchestrator's machine")
		}
	default:
		return invalid(kind, shown, "use https, http, ssh, git or file")
	}
	if strings.Contains(user, ":") {
		return withoutSecret(kind, s)
	}
	return nil
}

// CheckSecrets refuses a repository whose http or https URL has a user, which servers
// take for a token. [CommitSource.Check] does not: earlier versions have stored some.
func (s CommitSource) CheckSecrets() error { return withoutSecret("source.git", s.Git) }

// withoutSecret refuses a URL with a password, and an http or https URL with a user. It
// accepts all others.
func withoutSecret(kind, address string) error {
	scheme, rest, isURL := strings.Cut(address, "://")
	authority, _, _ := strings.Cut(rest, "/")
	at := strings.LastIndex(authority, "@")
	if !isURL || at < 0 {
		return nil
	}
	if strings.Contains(authority[:at], ":") || scheme == "https" || scheme == "http" {
		return invalid(kind, scheme+"://…@"+authority[at+1:], "the URL holds a password or a token, which everybody with access to the project could read; use an SSH key, or git's credential helper of the user that reads the repository")
	}
	return nil
}

// branchLike reports whether s follows git's rules for names of references, as far as
// they matter when the name becomes an argument.
func branchLike(s string) bool {
	if len(s) > 200 || strings.HasPrefix(s, "-") || strings.HasPrefix(s, "/") || strings.HasSuffix(s, "/") || strings.HasSuffix(s, ".") || s == "@" {
		return false
	}
	for _, part := range strings.Split(s, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	if strings.Contains(s, "..") || strings.Contains(s, "@{") {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune(" ~^:?*[\\", r) })
}
