package pages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// From a request one comes to the drawing of its jobs, from a box to a job, and from the set
// to one of its graphs.
func aGraphIsRead(t *testing.T, _ scene, b *tab) {
	project := sharedGateway(t)
	b.visit("/requests/" + project + ":1.2.0")
	b.follow(`#jobs a[href^="/graphs/"]`)
	set := b.where()
	require.Contains(t, b.text("h1"), "Graphs of request")
	require.Contains(t, b.text(".sentence"), "success")
	boxes, rows := ask[int](b, `document.querySelectorAll("svg.graph a").length`), b.texts("#jobs tbody tr")
	require.Len(t, rows, boxes, "the table has every job of the drawing")
	require.NotEmpty(t, rows)

	b.follow(`svg.graph a.good`)
	require.True(t, strings.HasPrefix(b.where(), "/jobs/"), b.where())
	b.back()
	b.follow(`#jobs .filters a[href*="show=success"]`)
	require.Equal(t, set+"?show=success", b.where())
	require.NotEmpty(t, b.texts("#jobs tbody tr"))
	b.back()
	b.follow(`#graphs tbody tr:first-child td:first-child a`)
	require.Equal(t, set+"-1", b.where())
	require.Contains(t, b.text("h1"), "Graph ")
	b.follow(`main a[href="` + set + `"]`)
	require.Equal(t, set, b.where())
}
