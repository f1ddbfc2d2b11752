package pages

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// publishing asks before it tells, and is customised by the story.
const publishing = `description: Ask and tell.
nodes:
  - {name: agree, sign-off: {question: "Publish 1.0.0?", limit: 1h}}
  - {name: tell, needs: agree, notify: {tag: 1.0.0, text: published}}
  - {name: archive, needs: agree, notify: {tag: 1.0.0, text: archived}}
`

// A graph that waits for a person says so first, takes the answer, and goes on while one
// looks; what was changed by hand stands beside it.
func aGraphAsksAPerson(t *testing.T, s scene, b *tab) {
	project := s.printing(t, "asked")
	_, err := s.API.PushDefinitions(t.Context(), project, apiclient.DefinitionsPush{Files: map[string]string{"graphs/publish.yaml": publishing}}, false)
	require.NoError(t, err)
	started, err := s.API.RunGraph(t.Context(), project, apiclient.GraphCall{
		Template: "publish", Changes: []apiclient.NodeChange{{Node: "archive", Remove: true}},
	}, false)
	require.NoError(t, err)
	id := started.Request.ID
	var ask apiclient.GraphNode
	require.Eventually(t, func() bool {
		set, err := s.API.Graph(t.Context(), string(id))
		if err != nil {
			return false // not written yet
		}
		for _, n := range set.Nodes {
			if n.Kind == graph.KindSignOff {
				ask = n
			}
		}
		return ask.State == graph.Ready
	}, patience, 200*time.Millisecond)

	b.signIn(s.token)
	b.visit("/graphs/" + string(id))
	require.Contains(t, b.text("#customised"), "archive is gone")
	act := "#act-sign-off-" + string(ask.Job)
	require.Contains(t, b.text("#sign-off-"+string(ask.Job)), "Publish 1.0.0?")
	b.unfold(act)
	for _, found := range b.findings(axe(t)) {
		t.Error(found)
	}
	b.enter("#reason-sign-off-"+string(ask.Job), "looks good")
	b.follow(act + " button")
	require.Equal(t, "/graphs/"+string(id), b.where())
	require.Equal(t, bench.Success, s.ended(t, id))
	b.awaitText(".sentence", "2 success")
	b.await(`document.querySelector("` + act + `") === null`)
	require.Contains(t, b.text("#jobs"), "agreed by")
	require.Contains(t, b.text("#jobs"), "looks good")
	require.Contains(t, b.text("#jobs"), "published")
}
