package sizing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/sizing"
)

// A class whose collectors are all dead is offered to nobody while another has a live one;
// when none has, jobs wait where they would run. What is too small still goes to the largest.
func TestClassesWithoutLiveCollectorsAreNotSelected(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"size": {"minimum": "3s"}}`, 1, 2, 4)
	b.execute(`update collector_config set last_heartbeat = now() - interval '1 day' where size_class = 4`)
	first, second := b.submit("make"), b.submit("make")
	b.place(4)
	require.Equal(t, []any{bench.SizeClass(1), 3.0}, []any{b.at(first).SizeClass, b.at(first).TimeoutSeconds})
	require.Equal(t, []any{bench.SizeClass(2), 0.0}, []any{b.at(second).SizeClass, b.at(second).TimeoutSeconds}, "nobody larger lives")
	view, err := b.View(t.Context())
	require.NoError(t, err)
	at, err := view.Standing(t.Context(), bench.ProjectConfig{}, second)
	require.NoError(t, err)
	require.Equal(t, bench.SizeClass(4), at.Next)

	// What was learned of class 4 lets nobody wait for it either.
	b.run(second, 1, bench.RunSuccess, 60)
	b.end(second)
	require.Equal(t, bench.SizeClass(2), b.known(second).Best)
	third := b.submit("make")
	fleet, err := b.store.Fleet(t.Context(), offline)
	require.NoError(t, err)
	j, err := b.store.SizingOf(t.Context(), third)
	require.NoError(t, err)
	known, err := sizing.ReadStatistics(b.known(third).Statistics)
	require.NoError(t, err)
	e, err := sizing.Explain(fleet, j, known, b.Now())
	require.NoError(t, err)
	require.Len(t, e.Selection.Choices, 2)

	b.execute(`update collector_config set last_heartbeat = now() - interval '1 day'`)
	b.place(4)
	b.place(2)
	require.NotNil(t, b.at(third).SelectedAt)
}
