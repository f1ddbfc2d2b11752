package cli

import (
	"fmt"
	"io"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// Commits writes a project's commits with the requests for them.
func Commits(w io.Writer, list apiclient.CommitList, v View) error {
	if list.Source == nil && len(list.Commits) == 0 {
		return write(w, "The project names no repository; set source.git in its file and apply it with 'benchloom project apply'.\n")
	}
	if len(list.Commits) == 0 {
		if err := write(w, "There are no commits yet.\n"); err != nil {
			return err
		}
	} else if err := commitTable(list.Commits, v).Write(w, v.Width); err != nil {
		return err
	}
	if list.Source == nil || list.Source.FailingSince == nil {
		return nil
	}
	return write(w, fmt.Sprintf("%s is %s\n", Printable(list.Source.Repository), Printable(sourceStanding(*list.Source, v))))
}

func commitTable(list []apiclient.Commit, v View) *Table {
	t := NewTable(Column{Heading: "commit"}, Column{Heading: "committed"}, Column{Heading: "request"}, Column{Heading: "state"}, Column{Heading: "author"}, Column{Heading: "subject", Flex: true})
	for _, c := range list {
		request, state := "", ""
		switch {
		case c.Request != nil && c.Request.Outcome != "":
			request, state = string(c.Request.ID), words(c.Request.Outcome)
		case c.Request != nil:
			request, state = string(c.Request.ID), words(c.Request.Status)
		case c.Skipped:
			state = "skipped"
		}
		if !c.OnBranch {
			state += ", off the branch"
		}
		t.Row(c.SHA, Ago(v.Now, c.CommittedAt), request, state, cut(c.Author, 20), c.Subject)
	}
	return t
}

// sourceStanding describes whether a source can be read and, if not, since when.
func sourceStanding(s apiclient.SourceState, v View) string {
	switch {
	case s.FailingSince != nil:
		return fmt.Sprintf("failing since %s: %s", moment(v.Now, s.FailingSince), s.Message)
	case s.LastOKAt == nil:
		return "not looked at yet"
	case s.Message != "":
		return fmt.Sprintf("read %s; %s", Ago(v.Now, *s.LastOKAt), s.Message)
	}
	return "read " + Ago(v.Now, *s.LastOKAt)
}

// sourceFields returns the displayed fields of a project's source; none if it has
// none.
func sourceFields(p apiclient.Project, v View) [][2]string {
	if p.SourceState == nil {
		return nil
	}
	source := p.Config.Source
	releases := ""
	if source.Releases != "" {
		releases = "tags " + source.Releases
	}
	every := source.Every
	if every == "" {
		every = Duration(source.Interval())
	}
	return [][2]string{
		{"commits", fmt.Sprintf("%s, branch %s, every %s", source.Git, source.BranchName(), every)},
		{"commits are", sourceStanding(*p.SourceState, v)},
		{"head", p.SourceState.Head},
		{"releases", releases},
	}
}

// Synced writes that a look at a project's commits was triggered.
func Synced(w io.Writer, project string, s apiclient.SourceState) error {
	return write(w, fmt.Sprintf("looking at branch %s of %s; 'benchloom project commits %s' lists the commits\n", Printable(s.Branch), Printable(s.Repository), project))
}
