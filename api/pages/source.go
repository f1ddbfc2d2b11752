package pages

import (
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// sourceLinks lead to a project's repository on the web. An address is empty if there is no such
// page, or its address is not known.
type sourceLinks struct{ bench.CommitSource }

// sourceOf returns the links of a project.
func sourceOf(p apiclient.Project) sourceLinks { return sourceLinks{p.Config.Source} }

// commit leads to what an artifact was made from.
func (s sourceLinks) commit(of bench.RequestType, tag string) string {
	if !s.Names(of, tag) {
		return ""
	}
	return s.CommitAddress(tag)
}

// diff leads to what was changed from one artifact to another.
func (s sourceLinks) diff(fromType bench.RequestType, from string, toType bench.RequestType, to string) string {
	if !s.Names(fromType, from) || !s.Names(toType, to) {
		return ""
	}
	return s.DiffAddress(from, to)
}
