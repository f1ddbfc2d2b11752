package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/store"
)

func (r record) enrol(name, machine, secret string) error {
	return r.EnrollUninvited(r.t.Context(), name, []string{machine}, hashOf(secret), offline)
}

// owner returns whose token a secret is; empty: nobody's.
func (r record) owner(secret string) string {
	p, err := r.PrincipalOf(r.t.Context(), hashOf(secret))
	if err != nil {
		require.ErrorIs(r.t, err, store.ErrNotFound)
	}
	return p.Collector
}

// The first machine that asks owns the name until a person gives it away.
func TestANameHasOneOwner(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	twice(t, func() error { return r.enrol("one", "m1", "secret of one") })
	require.Equal(t, "one", r.owner("secret of one"))
	require.ErrorIs(t, r.enrol("one", "m1", "another secret"), store.ErrEnrolled)
	require.ErrorIs(t, r.enrol("one", "m2", "another secret"), store.ErrEnrolled)
	require.ErrorIs(t, r.enrol("two", "m1", "secret of one"), store.ErrEnrolled, "a token is one collector's")
	require.Empty(t, r.owner("another secret"))

	require.NoError(t, r.RemoveCollector(t.Context(), "one"))
	require.Empty(t, r.owner("secret of one"))
	require.NoError(t, r.enrol("one", "m2", "another secret"))
	require.Equal(t, "one", r.owner("another secret"))

	invited := store.Invitation{Name: "three", Target: target, SizeClass: 2, Pool: "small"}
	_, err := r.InviteCollector(t.Context(), invited, hashOf("invitation"), time.Hour, false)
	require.NoError(t, err)
	require.ErrorIs(t, r.enrol("three", "m3", "secret of three"), store.ErrInvited, "also before it has come")

	// An invitation gives the name away, and the former token with it.
	invited.Name = "one"
	_, err = r.InviteCollector(t.Context(), invited, hashOf("invitation of one"), time.Hour, true)
	require.NoError(t, err)
	_, err = r.EnrollCollector(t.Context(), hashOf("invitation of one"), hashOf("third secret"))
	require.NoError(t, err)
	require.Empty(t, r.owner("another secret"))
	require.Equal(t, "one", r.owner("third secret"))
}

// A collector that registered before it had a token of its own keeps its name from
// others as long as it is heard of.
func TestALiveCollectorsNameIsNotTakenOver(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.register("one")
	slot := collector("big-c2-1")
	slot.Host, slot.MachineID = "big", "slot of big"
	_, err := r.RegisterCollector(t.Context(), slot, offline)
	require.NoError(t, err)
	require.ErrorIs(t, r.enrol("one", "another machine", "planted"), store.ErrNameTaken)
	require.ErrorIs(t, r.enrol("big", "another machine", "planted"), store.ErrNameTaken, "nor a shared host's, whose slots are live")
	require.NoError(t, r.enrol("one", "machine of one", "secret of one"))
	require.NoError(t, r.enrol("big", "slot of big", "secret of big"))

	r.register("two")
	r.silent("two", time.Minute)
	require.NoError(t, r.enrol("two", "another machine", "secret of two"), "it was silent for too long")
}

// Of several machines that ask for a name at once, one gets it.
func TestOneOfSeveralMachinesGetsTheName(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	secrets, won := names(8), 0
	for _, err := range together(len(secrets), func(i int) error { return r.enrol("one", secrets[i], secrets[i]) }) {
		if err == nil {
			won++
			continue
		}
		require.ErrorIs(t, err, store.ErrEnrolled)
	}
	require.Equal(t, 1, won)
	require.Equal(t, 1, r.count(`select count(*) from access_token where collector = 'one'`))
}

// A name stands for hardware: another machine under it would continue its series.
func TestHardwareIsBoundUntilAPersonGivesTheNameAway(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	register := func(hardware string) error {
		c := collector("one")
		c.HardwareID = hardware
		_, err := r.RegisterCollector(t.Context(), c, offline)
		return err
	}
	require.NoError(t, r.enrol("one", "machine of one", "secret of one"))
	require.NoError(t, register("zen4"), "the first registration binds it")
	require.NoError(t, register("zen4"))
	var other *store.NewMachineError
	require.ErrorAs(t, register("zen5"), &other)
	require.Equal(t, store.NewMachineError{Name: "one", Was: "zen4", Is: "zen5"}, *other)
	require.Equal(t, "zen4", r.collector("one").HardwareID)
	r.silent("one", time.Hour)
	require.ErrorAs(t, register("zen5"), &other, "silence changes nothing")
	require.NoError(t, register("zen4"))

	// Removed, or invited and enrolled again, it is bound anew.
	require.NoError(t, r.RemoveCollector(t.Context(), "one"))
	require.NoError(t, register("zen5"))
	require.ErrorAs(t, register("zen4"), &other)
	invited := store.Invitation{Name: "one", Target: target, SizeClass: 2, Pool: "small"}
	_, err := r.InviteCollector(t.Context(), invited, hashOf("invitation"), time.Hour, true)
	require.NoError(t, err)
	require.ErrorAs(t, register("zen4"), &other, "an invitation alone changes nothing")
	for range 2 {
		_, err = r.EnrollCollector(t.Context(), hashOf("invitation"), hashOf("own secret"))
		require.NoError(t, err)
	}
	require.NoError(t, register("zen4"))
	_, err = r.EnrollCollector(t.Context(), hashOf("invitation"), hashOf("own secret"))
	require.NoError(t, err)
	require.ErrorAs(t, register("zen5"), &other, "a repeated enrolment does not bind it anew")
}

// Slots are bound by the enrolment of their host.
func TestSlotsAreBoundByTheirHost(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	register := func(hardware string) error {
		slot := collector("big-c2-1")
		slot.Host, slot.HardwareID = "big", hardware
		_, err := r.RegisterCollector(t.Context(), slot, offline)
		return err
	}
	require.NoError(t, register("zen4"))
	require.ErrorAs(t, register("zen5"), new(*store.NewMachineError))
	r.silent("big-c2-1", time.Minute)
	require.NoError(t, r.enrol("big", "machine of big", "secret of big"))
	require.NoError(t, register("zen5"))
	require.ErrorAs(t, register("zen4"), new(*store.NewMachineError))
}
