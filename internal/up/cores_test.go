package up_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/up"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	eight := measure.CPUList{0, 1, 2, 3, 4, 5, 6, 7}
	for name, c := range map[string]struct {
		cores measure.CPUList
		spec  string
		share bool
		want  []up.Slot
	}{
		"one collector has all that the services leave": {
			cores: eight[:4],
			want:  []up.Slot{{Name: "local-1", Class: 3, CPUs: measure.CPUList{1, 2, 3}}},
		},
		"several are on disjoint cores and co-located": {
			cores: eight, spec: "2x1,1x4",
			want: []up.Slot{
				{Name: "local-1", Class: 1, CPUs: measure.CPUList{1}, CoLocated: true},
				{Name: "local-2", Class: 1, CPUs: measure.CPUList{2}, CoLocated: true},
				{Name: "local-3", Class: 4, CPUs: measure.CPUList{3, 4, 5, 6}, CoLocated: true},
			},
		},
		"what is shared is not the services' core": {
			cores: eight[:2], spec: "2x1", share: true,
			want: []up.Slot{
				{Name: "local-1", Class: 1, CPUs: measure.CPUList{1}, Shared: true, CoLocated: true},
				{Name: "local-2", Class: 1, CPUs: measure.CPUList{1}, Shared: true, CoLocated: true},
			},
		},
		"collectors of several cores overlap in as few as possible": {
			cores: eight[:4], spec: "3x2", share: true,
			want: []up.Slot{
				{Name: "local-1", Class: 2, CPUs: measure.CPUList{1, 2}, Shared: true, CoLocated: true},
				{Name: "local-2", Class: 2, CPUs: measure.CPUList{1, 3}, Shared: true, CoLocated: true},
				{Name: "local-3", Class: 2, CPUs: measure.CPUList{2, 3}, Shared: true, CoLocated: true},
			},
		},
		"a class beyond the cores that the services leave has them all": {
			cores: eight[:2], spec: "1x1,1x4", share: true,
			want: []up.Slot{
				{Name: "local-1", Class: 1, CPUs: measure.CPUList{1}, Shared: true, CoLocated: true},
				{Name: "local-2", Class: 4, CPUs: measure.CPUList{0, 1}, Shared: true, CoLocated: true},
			},
		},
		"a class of all cores has the services' core, too": {
			cores: eight[:2], spec: "1x1,1x2", share: true,
			want: []up.Slot{
				{Name: "local-1", Class: 1, CPUs: measure.CPUList{1}, Shared: true, CoLocated: true},
				{Name: "local-2", Class: 2, CPUs: measure.CPUList{0, 1}, Shared: true, CoLocated: true},
			},
		},
		"a single core can only be shared": {
			cores: eight[:1], share: true,
			want: []up.Slot{{Name: "local-1", Class: 1, CPUs: measure.CPUList{0}, Shared: true, CoLocated: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := up.Plan(c.cores, c.spec, c.share)
			require.NoError(t, err)
			require.Equal(t, c.want, got.Slots)
			require.Equal(t, measure.CPUList{0}, got.Services)
		})
	}
}

func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	two := measure.CPUList{0, 1}
	for spec, want := range map[string]string{
		"1x4":   "allow sharing with --share-cores",
		"2x1":   "allow sharing with --share-cores",
		"two":   "is not <number>x<size class>",
		"1x0":   "size class",
		"0x1":   "is not <number>x<size class>",
		"1x1,":  "is not <number>x<size class>",
		"99999": "is not <number>x<size class>",
	} {
		_, err := up.Plan(two, spec, false)
		require.ErrorContains(t, err, want, spec)
	}
}

// Memory grows with the size class, also where a class is larger than the machine.
func TestMemoryShare(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string][]int64{"1x1": {500}, "1x1,1x2": {500, 1000}, "1x1,1x2,1x4": {250, 500, 1000}} {
		layout, err := up.Plan(measure.CPUList{0, 1}, spec, true)
		require.NoError(t, err)
		for i, slot := range layout.Slots {
			require.Equal(t, want[i], layout.MemoryShare(slot, 1000, 2), spec)
		}
	}
}
