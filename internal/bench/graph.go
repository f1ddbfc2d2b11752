package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// GraphReason says why a graph of a request was written.
type GraphReason string

const (
	// GraphBuild, GraphParent, GraphOwn and GraphVerify: a stage was written.
	GraphBuild  = GraphReason(StageBuild)
	GraphParent = GraphReason(StageParent)
	GraphOwn    = GraphReason(StageOwn)
	GraphVerify = GraphReason(StageVerify)
	// GraphTemplate: the nodes of a template were written.
	GraphTemplate GraphReason = "template"
	// GraphRetry, GraphRemeasure and GraphRetrigger: somebody had jobs replaced.
	GraphRetry     GraphReason = "retry"
	GraphRemeasure GraphReason = "remeasure"
	GraphRetrigger GraphReason = "retrigger"
)

// GraphID names a graph by its request and its number in the request's set, for example
// "r7k2m4q9xt2-1". The set has the ID of its request.
type GraphID struct {
	Request RequestID
	// Number ascends in the set from 1.
	Number int
}

// String returns the ID as people write it.
func (id GraphID) String() string { return fmt.Sprintf("%s-%d", id.Request, id.Number) }

// ParseGraphID parses a graph's ID.
func ParseGraphID(s string) (GraphID, error) {
	request, number, _ := strings.Cut(s, "-")
	id, err := ParseRequestID(request)
	n, notNumber := strconv.Atoi(number)
	if err != nil || notNumber != nil || n < 1 || n > 1<<30 || strconv.Itoa(n) != number {
		return GraphID{}, invalid("graph ID", s, "a graph's ID is that of its request, a hyphen and its number, as 'benchloom graph list' shows it")
	}
	return GraphID{id, n}, nil
}
