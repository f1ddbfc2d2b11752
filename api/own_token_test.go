package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// The token that collectors share gives each of them its own, and opens nothing else.
func TestTheSharedTokenOnlyEnrols(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for what, f := range map[string]func() error{
		"registration": func() error { _, err := b.shared.RegisterCollector(t.Context(), registration("c2")); return err },
		"heartbeat":    func() error { _, err := b.shared.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{}); return err },
		"end of a run": func() error {
			return b.shared.FinishRun(t.Context(), "aaaaaaaaaaaaaaaa-00000000", apiclient.RunFinish{Outcome: bench.RunSuccess})
		},
		"build": func() error {
			_, err := b.shared.BuildChunk(t.Context(), bench.BuildKey(strings.Repeat("0", 64)), 0)
			return err
		},
	} {
		err := f()
		require.Equal(t, "urn:benchloom:shared-token", problemOf(t, err).Type, what)
		require.ErrorContains(t, err, "the token of machines is shared by collectors")
	}
	require.NoError(t, b.ownToken(t.Context(), "c2"))
	info, err := b.client(t, "own c2").Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"c2", "collector", "c2"}, []string{info.Principal, info.Role, info.Collector})
	_, err = b.client(t, "own c2").RegisterCollector(t.Context(), registration("c2"))
	require.NoError(t, err)
	_, err = b.client(t, "own c2").RegisterCollector(t.Context(), registration("c3"))
	require.Equal(t, "urn:benchloom:not-yours", problemOf(t, err).Type)
	require.NotContains(t, b.log.String(), b.tokens["own c2"])

	// An own token enrols nobody, and nor does a person's.
	for _, client := range []*apiclient.Client{b.client(t, "own c2"), b.admin, b.nobody} {
		err := client.PutOwnToken(t.Context(), apiclient.OwnToken{Name: "c4", SecretHash: sha256Hex("c4"), Machines: []string{}})
		require.Contains(t, []int{http.StatusForbidden, http.StatusUnauthorized}, problemOf(t, err).Status)
	}
}

// A name belongs to the machine that enrolled it, until a person removes it.
func TestANameIsNotTakenOverWithTheSharedToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ask := func(name, secret, machine string) error {
		return b.shared.PutOwnToken(t.Context(), apiclient.OwnToken{Name: name, SecretHash: sha256Hex(secret), Machines: []string{machine}})
	}
	b.register(t, "c1")
	for range 2 {
		require.NoError(t, ask("c2", "secret of c2", "machine-of-c2"))
	}
	for name, kind := range map[string]string{"c1": "enrolled", "c2": "enrolled", "big-c2-1": "invalid", "C 1": "invalid"} {
		err := ask(name, "planted", "machine-of-"+name)
		require.Equal(t, "urn:benchloom:"+kind, problemOf(t, err).Type, name)
	}
	require.ErrorContains(t, ask("c1", "planted", ""), "give this one away with 'benchloom collector remove c1'")
	require.ErrorContains(t, ask("big-c2-1", "planted", ""), "use the token of the host, big")

	// One that registered before there were own tokens keeps its name as well.
	b.past(t, `delete from access_token where collector = 'c1'`)
	require.ErrorIs(t, ask("c1", "planted", "another machine"), apiclient.ErrNameTaken)
	require.NoError(t, ask("c1", "secret of c1", "machine-of-c1"))

	// Removed, also before it has ever registered, the name is free.
	require.NoError(t, b.admin.RemoveCollector(t.Context(), "c2", false))
	require.NoError(t, ask("c2", "another secret", "another machine"))

	invited := setup(t, invitedOnly)
	_, err := invited.admin.InviteCollector(t.Context(), invite("c1"))
	require.NoError(t, err)
	for name, kind := range map[string]string{"c1": "not-yours", "c2": "not-configured"} {
		err := invited.shared.PutOwnToken(t.Context(), apiclient.OwnToken{Name: name, SecretHash: sha256Hex("planted"), Machines: []string{}})
		require.Equal(t, "urn:benchloom:"+kind, problemOf(t, err).Type, name)
	}
	_, err = b.admin.InviteCollector(t.Context(), invite("c3"))
	require.NoError(t, err)
	require.Equal(t, "urn:benchloom:not-yours", problemOf(t, ask("c3", "planted", "")).Type, "where collectors may come uninvited, too")
}

// A machine whose hardware has changed is told that it is a new one, and how it may take
// the name.
func TestOtherHardwareIsANewMachine(t *testing.T) {
	t.Parallel()
	now := &clock{now: time.Now()}
	b := setup(t, withClock(now), func(c *api.Config) { c.TemporalAddress = "temporal.example.com:7233" })
	b.register(t, "c1")
	other := registration("c1")
	other.HardwareID = "cpu1"
	_, err := b.collector.RegisterCollector(t.Context(), other)
	require.ErrorIs(t, err, apiclient.ErrNewMachine)
	require.False(t, apiclient.IsTransient(err))
	require.ErrorContains(t, err, "collector c1 is the machine with hardware ID cpu0, and this one has cpu1: a machine with another CPU model")
	require.ErrorContains(t, err, "choose another name, or give it this one with 'benchloom collector remove c1', then start it again")
	now.advance(time.Hour)
	require.NoError(t, b.admin.RemoveCollector(t.Context(), "c1", false))
	require.NoError(t, b.ownToken(t.Context(), "c1"))
	_, err = b.collector.RegisterCollector(t.Context(), other)
	require.NoError(t, err)

	// An invited one is invited again.
	own := b.enrol(t, "c2")
	_, err = own.RegisterCollector(t.Context(), unnamed("c2"))
	require.NoError(t, err)
	other = unnamed("c2")
	other.HardwareID = "cpu1"
	_, err = own.RegisterCollector(t.Context(), other)
	require.ErrorIs(t, err, apiclient.ErrNewMachine)
	require.ErrorContains(t, err, "'benchloom collector invite c2 --replace', then 'benchloom collector enroll' on this machine")
}
