package bench

import (
	"net/url"
	"path"
	"strconv"
	"strings"
)

// WebLinks are templates of the addresses at which a repository is read on the web.
// Those left out follow from source.git, if that is an https URL: commits and
// comparisons as at GitHub and forges like it, pull requests at GitHub alone.
type WebLinks struct {
	Commit      string `json:"commit,omitempty" yaml:"commit" doc:"Template of a commit's address on the web, an https URL with {commit}; empty: as at GitHub, if git is an https URL." example:"https://gitlab.example.org/team/app/-/commit/{commit}"`
	Diff        string `json:"diff,omitempty" yaml:"diff" doc:"Template of the address at which two commits are compared, an https URL with {from} and {to}; empty: as at GitHub, if git is an https URL." example:"https://gitlab.example.org/team/app/-/compare/{from}...{to}"`
	PullRequest string `json:"pull_request,omitempty" yaml:"pull_request" doc:"Template of a pull request's address, an https URL with {number}; empty: GitHub's, if git is there." example:"https://gitlab.example.org/team/app/-/merge_requests/{number}"`
}

// Placeholders of templates.
const (
	commitPlace = "{commit}"
	fromPlace   = "{from}"
	toPlace     = "{to}"
	numberPlace = "{number}"
)

const (
	https        = "https://"
	gitHub       = "github.com"
	maxWebLength = 500
)

// Names reports whether an artifact has the name of a commit or a tag of the repository.
func (s CommitSource) Names(of RequestType, tag string) bool {
	if of != Release {
		return of.HasParent()
	}
	matches, err := path.Match(s.Releases, tag)
	return err == nil && matches
}

// CommitAddress returns where a commit, or a tag, is read on the web; empty: not known.
func (s CommitSource) CommitAddress(commit string) string {
	return filled(s.webLinks().Commit, commitPlace, commit)
}

// DiffAddress returns where the difference between two commits, or tags, is read on the
// web; empty: not known.
func (s CommitSource) DiffAddress(from, to string) string {
	if from == to {
		return ""
	}
	return filled(s.webLinks().Diff, fromPlace, from, toPlace, to)
}

// PullRequestAddress returns where a pull request is read on the web; empty: not known.
func (s CommitSource) PullRequestAddress(number int) string {
	if number <= 0 {
		return ""
	}
	return filled(s.webLinks().PullRequest, numberPlace, strconv.Itoa(number))
}

// webLinks returns the templates, with those that follow from the repository's address.
func (s CommitSource) webLinks() WebLinks {
	w := s.Web
	at, err := url.Parse(s.Git)
	if err != nil || at.Scheme != "https" || at.Host == "" {
		return w // another form of address, not of the web
	}
	repository := https + at.Host + strings.TrimSuffix(strings.TrimSuffix(at.EscapedPath(), "/"), ".git")
	if w.Commit == "" {
		w.Commit = repository + "/commit/" + commitPlace
	}
	if w.Diff == "" {
		w.Diff = repository + "/compare/" + fromPlace + "..." + toPlace
	}
	if w.PullRequest == "" && at.Host == gitHub {
		w.PullRequest = repository + "/pull/" + numberPlace
	}
	return w
}

// filled returns a template with values at its placeholders, each escaped for its place;
// empty if the template or a value is.
func filled(template string, placesAndValues ...string) string {
	if template == "" {
		return ""
	}
	var inPath, inQuery []string
	for i := 0; i < len(placesAndValues); i += 2 {
		place, value := placesAndValues[i], placesAndValues[i+1]
		if value == "" {
			return ""
		}
		inPath = append(inPath, place, url.PathEscape(value))
		inQuery = append(inQuery, place, url.QueryEscape(value))
	}
	address, query, asks := strings.Cut(template, "?")
	address = strings.NewReplacer(inPath...).Replace(address)
	if !asks {
		return address
	}
	return address + "?" + strings.NewReplacer(inQuery...).Replace(query)
}

// Check refuses templates that are no https URLs, or lack a placeholder.
func (w WebLinks) Check() error {
	for _, t := range []struct {
		kind, template string
		places         []string
	}{
		{"source.web.commit", w.Commit, []string{commitPlace}},
		{"source.web.diff", w.Diff, []string{fromPlace, toPlace}},
		{"source.web.pull_request", w.PullRequest, []string{numberPlace}},
	} {
		if t.template == "" {
			continue
		}
		if err := checkTemplate(t.kind, t.template, t.places); err != nil {
			return err
		}
	}
	return nil
}

// checkTemplate accepts a template that is an https URL of a named host, without a
// user, whatever stands at its placeholders.
func checkTemplate(kind, template string, places []string) error {
	wants := "write an https URL with " + strings.Join(places, " and ")
	odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'<>\\^`|#", r) }
	rest, secure := strings.CutPrefix(template, https)
	authority, _, _ := strings.Cut(rest, "/")
	authority, _, _ = strings.Cut(authority, "?")
	switch {
	case strings.Contains(authority, "@"):
		return invalid(kind, "", "the URL holds a user, which everybody with access to the project could read; "+wants)
	case len(template) > maxWebLength || strings.ContainsFunc(template, odd) || !secure:
		return invalid(kind, template[:min(len(template), maxWebLength)], wants+", of plain characters and without a fragment")
	}
	sample, plain := template, template
	for _, place := range places {
		if !strings.Contains(template, place) {
			return invalid(kind, template, wants)
		}
		sample, plain = strings.ReplaceAll(sample, place, "0"), strings.ReplaceAll(plain, place, "")
	}
	if strings.ContainsAny(plain, "{}") {
		return invalid(kind, template, "nothing but "+strings.Join(places, " and ")+" is filled in; "+wants)
	}
	at, err := url.Parse(sample)
	if err != nil || at.Host == "" || at.Hostname() == "" || at.Host != authority {
		return invalid(kind, template, "the URL names no host, or a part of it; "+wants)
	}
	return nil
}
