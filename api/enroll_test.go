package api_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

func invitedOnly(c *api.Config) {
	c.InvitedOnly, c.TemporalAddress = true, "temporal.example.com:7233"
}

func invite(name string) apiclient.Invite {
	return apiclient.Invite{
		Name: name, Target: linux, SizeClass: 2, Pool: "main", Labels: map[string]string{"rack": "2"}, BenchmarkSets: []string{"first"},
	}
}

// enrol invites and enrols a collector, and gives a client with its own token.
func (b *bundle) enrol(t testing.TB, name string) *apiclient.Client {
	t.Helper()
	invited, err := b.admin.InviteCollector(t.Context(), invite(name))
	require.NoError(t, err)
	return b.accept(t, invited)
}

// accept enrols a collector that was invited.
func (b *bundle) accept(t testing.TB, invited apiclient.Invitation) *apiclient.Client {
	t.Helper()
	secret, err := api.NewToken(rand.Reader)
	require.NoError(t, err)
	enrolled, err := b.nobody.EnrollCollector(t.Context(), apiclient.Enrolment{Token: invited.Token, SecretHash: sha256Hex(secret), Host: linux})
	require.NoError(t, err)
	require.Equal(t, "temporal.example.com:7233", enrolled.Temporal)
	require.Equal(t, "benchloom", enrolled.Namespace)
	require.Equal(t, invited.Name, enrolled.Invitation.Name)
	require.Empty(t, enrolled.Invitation.Token)
	b.tokens[invited.Name] = secret
	return b.client(t, invited.Name)
}

func sha256Hex(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// unnamed is a registration that leaves everything to what is configured.
func unnamed(name string) apiclient.Registration {
	r := registration(name)
	r.Target, r.SizeClass, r.Pool = "", 0, ""
	return r
}

func TestAnEnrolledCollectorGetsItsConfiguration(t *testing.T) {
	t.Parallel()
	b := setup(t, invitedOnly)
	own := b.enrol(t, "c1")
	asked := unnamed("c1")
	asked.Labels, asked.BenchmarkSets = map[string]string{"rack": "9"}, []string{"all"}
	r, err := own.RegisterCollector(t.Context(), asked)
	require.NoError(t, err)
	require.Equal(t, "bench/x86_64-unknown-linux-gnu/2/main", r.TaskQueue)
	require.Equal(t, map[string]string{"rack": "2"}, r.Collector.Labels)
	require.Equal(t, []string{"first"}, r.Collector.BenchmarkSets)

	// The log knows that it came, and none of its secrets.
	require.Contains(t, b.log.String(), "collector enrolled")
	require.NotContains(t, b.log.String(), b.tokens["c1"])
	require.NotContains(t, b.log.String(), apiclient.EnrolmentPrefix)
	info, err := b.nobody.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, "temporal.example.com:7233", info.Temporal)
}

func TestARegistrationIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	b := setup(t, invitedOnly)
	own := b.enrol(t, "c1")
	for want, refused := range map[string]struct {
		kind   string
		client *apiclient.Client
		change func(*apiclient.Registration)
	}{
		"is shared by collectors and only gives each of them its own":              {"shared-token", b.shared, func(*apiclient.Registration) {}},
		"this token belongs to collector c1 and gives no access to collector c9":   {"not-yours", own, func(r *apiclient.Registration) { r.Name = "c9" }},
		"configured with the pool main, not other":                                 {"not-configured", own, func(r *apiclient.Registration) { r.Pool = "other" }},
		"configured with the size class 2, not 3":                                  {"not-configured", own, func(r *apiclient.Registration) { r.SizeClass = 3 }},
		"configured with the target " + string(linux) + ", not " + string(arm):     {"not-configured", own, func(r *apiclient.Registration) { r.Target = arm }},
		"measures " + string(linux) + ", but this machine is " + string(arm) + ";": {"wrong-machine", own, func(r *apiclient.Registration) { r.Host = arm }},
	} {
		r := unnamed("c1")
		refused.change(&r)
		_, err := refused.client.RegisterCollector(t.Context(), r)
		require.ErrorContains(t, err, want)
		require.Equal(t, "urn:benchloom:"+refused.kind, problemOf(t, err).Type)
	}
	list, err := b.nobody.Collectors(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)

	// Where collectors may configure themselves, the architecture counts all the same.
	open := setup(t)
	r := registration("c1")
	r.Host = arm
	_, err = open.collector.RegisterCollector(t.Context(), r)
	require.Equal(t, "urn:benchloom:wrong-machine", problemOf(t, err).Type)
	r.Host, r.Labels = linux, map[string]string{"Rack 2": "x"}
	_, err = open.collector.RegisterCollector(t.Context(), r)
	require.ErrorContains(t, err, "label")
}

// A collector's token opens what is its own: not another's heartbeat, not
// another's run.
func TestAnothersTokenOpensNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, invitedOnly)
	b.project(t)
	own, others := b.enrol(t, "c1"), b.enrol(t, "c2")
	r, err := own.RegisterCollector(t.Context(), unnamed("c1"))
	require.NoError(t, err)
	j := b.submit(t, "1.26.0")
	run := bench.NewRunID(j.key, "workflow", "activity", 1)
	start := b.runStart(t, run, r)
	_, err = others.StartRun(t.Context(), run, start)
	require.Equal(t, "urn:benchloom:not-yours", problemOf(t, err).Type)
	plan, err := own.StartRun(t.Context(), run, start)
	require.NoError(t, err)

	for what, f := range map[string]func(c *apiclient.Client) error{
		"heartbeat": func(c *apiclient.Client) error {
			_, err := c.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{Epoch: r.Collector.Epoch})
			return err
		},
		"block": func(c *apiclient.Client) error {
			_, err := c.UploadBlock(t.Context(), plan.Run.ID, 1, block(j.cases, 1))
			return err
		},
		"log": func(c *apiclient.Client) error {
			_, err := c.AppendLog(t.Context(), plan.Run.ID, 0, []byte("x"))
			return err
		},
	} {
		err := f(others)
		require.Equal(t, "urn:benchloom:not-yours", problemOf(t, err).Type, what)
		require.NoError(t, f(own), what)
	}
	// For its owner, the run is merely not one of a build.
	for what, f := range map[string]func(c *apiclient.Client) error{
		"piece of a build": func(c *apiclient.Client) error {
			return c.UploadBuildChunk(t.Context(), plan.Run.ID, 0, []byte("planted"))
		},
		"end of a build": func(c *apiclient.Client) error {
			_, err := c.FinishBuild(t.Context(), plan.Run.ID, apiclient.BuildFinish{Size: 7, SHA256: sha256Hex("planted")})
			return err
		},
	} {
		require.Equal(t, "urn:benchloom:not-yours", problemOf(t, f(others)).Type, what)
		require.Equal(t, "urn:benchloom:no-build", problemOf(t, f(own)).Type, what)
	}
	finish := apiclient.RunFinish{Outcome: bench.RunSuccess}
	require.Equal(t, http.StatusForbidden, problemOf(t, others.FinishRun(t.Context(), plan.Run.ID, finish)).Status)
	require.NoError(t, own.FinishRun(t.Context(), plan.Run.ID, finish))
	_, err = own.InviteCollector(t.Context(), invite("c3"))
	require.Equal(t, http.StatusForbidden, problemOf(t, err).Status)
}

// The token of a shared host is its slots', which are what the host was invited as
// but for their size classes; it opens nothing else.
func TestTheTokenOfASharedHostIsItsSlots(t *testing.T) {
	t.Parallel()
	b := setup(t, invitedOnly)
	own, others := b.enrol(t, "big"), b.enrol(t, "c2")
	slot := func(name string, class bench.SizeClass) apiclient.Registration {
		r := unnamed(name)
		r.SizeClass, r.SharedHost, r.MemoryBytes = class, "big", int64(class)<<32
		return r
	}
	for name, class := range map[string]bench.SizeClass{"big-c1-1": 1, "big-c4-1": 4} {
		r, err := own.RegisterCollector(t.Context(), slot(name, class))
		require.NoError(t, err)
		require.Equal(t, "big", r.Collector.Host)
		require.Equal(t, class, r.Collector.SizeClass)
		require.Equal(t, "main", r.Collector.Pool)
		answer, err := own.Heartbeat(t.Context(), name, apiclient.Heartbeat{Epoch: r.Collector.Epoch, AskWaits: true})
		require.NoError(t, err)
		require.Equal(t, r.TaskQueues, answer.TaskQueues)
		require.Empty(t, answer.Waits)
		_, err = others.Heartbeat(t.Context(), name, apiclient.Heartbeat{Epoch: r.Collector.Epoch})
		require.Equal(t, "urn:benchloom:not-yours", problemOf(t, err).Type)
	}
	_, err := others.RegisterCollector(t.Context(), slot("big-c1-1", 1))
	require.Equal(t, "urn:benchloom:not-yours", problemOf(t, err).Type)
	_, err = b.shared.RegisterCollector(t.Context(), slot("big-c1-1", 1))
	require.Equal(t, "urn:benchloom:shared-token", problemOf(t, err).Type)
	for _, name := range []string{"big", "big-1"} {
		_, err := own.RegisterCollector(t.Context(), slot(name, 1))
		require.Error(t, err, name)
	}
	_, err = b.admin.InviteCollector(t.Context(), invite("big-c1-1"))
	require.ErrorContains(t, err, "invite the host, big")
}

func TestInvalidEnrolmentTokensAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, invitedOnly)
	invited, err := b.admin.InviteCollector(t.Context(), invite("c1"))
	require.NoError(t, err)
	enrol := func(token, secret string, host bench.Target) *apiclient.Problem {
		_, err := b.nobody.EnrollCollector(t.Context(), apiclient.Enrolment{Token: token, SecretHash: sha256Hex(secret), Host: host})
		return problemOf(t, err)
	}
	require.Equal(t, "urn:benchloom:unknown-invitation", enrol(apiclient.EnrolmentPrefix+"guessed", "s", linux).Type)
	require.Contains(t, enrol(b.tokens[api.RoleAdmin], "s", linux).Detail, "this is no enrolment token")
	require.Equal(t, "urn:benchloom:wrong-machine", enrol(invited.Token, "s", arm).Type)
	_, err = b.nobody.EnrollCollector(t.Context(), apiclient.Enrolment{Token: invited.Token, SecretHash: strings.Repeat("x", 64)})
	require.Equal(t, http.StatusUnprocessableEntity, problemOf(t, err).Status)

	// None of that has used it up.
	_, err = b.nobody.EnrollCollector(t.Context(), apiclient.Enrolment{Token: invited.Token, SecretHash: sha256Hex("s")})
	require.NoError(t, err)
	require.Equal(t, "urn:benchloom:enrolled", enrol(invited.Token, "another", linux).Type)
	_, err = b.admin.InviteCollector(t.Context(), invite("c1"))
	require.Equal(t, "urn:benchloom:enrolled", problemOf(t, err).Type)

	for want, change := range map[string]func(*apiclient.Invite){
		"size class":        func(i *apiclient.Invite) { i.SizeClass = 5000 },
		"pool \"A\"":        func(i *apiclient.Invite) { i.Pool = "A" },
		"collector \"A\"":   func(i *apiclient.Invite) { i.Name = "A" },
		"benchmark set":     func(i *apiclient.Invite) { i.BenchmarkSets = []string{"A"} },
		"control character": func(i *apiclient.Invite) { i.Labels = map[string]string{"rack": "2\n"} },
	} {
		i := invite("c2")
		change(&i)
		_, err := b.admin.InviteCollector(t.Context(), i)
		require.Equal(t, http.StatusUnprocessableEntity, problemOf(t, err).Status, want)
	}
}

// Time is the server's alone: what a heartbeat says of the future is refused or
// changes nothing.
func TestHeartbeatsFromTheFuture(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.register(t, "c1")
	_, err := b.collector.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{Epoch: r.Collector.Epoch + 1})
	require.ErrorIs(t, err, apiclient.ErrFenced, "no registration has this epoch yet")
	answer := b.send(t, api.RoleCollector, http.MethodPost, "/api/v1/collectors/c1/heartbeat", `{"epoch": 1, "last_heartbeat": "2999-01-01T00:00:00Z"}`)
	require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
	c, err := b.nobody.Collector(t.Context(), "c1")
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), c.LastHeartbeat, time.Minute)
	beat, err := b.collector.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{Epoch: r.Collector.Epoch})
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), beat.Now, time.Minute)
	require.Nil(t, beat.Waiting)
}

func TestAHeartbeatReturnsTheWantedVersionAndWaitingJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	r := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	list, err := b.admin.WantVersion(t.Context(), apiclient.WantVersion{Pool: "main", Version: "v9.9.9"})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "ada", list[0].SetBy)
	beat, err := b.collector.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{Epoch: r.Collector.Epoch, CountWaiting: true})
	require.NoError(t, err)
	require.Equal(t, "v9.9.9", beat.WantedVersion)
	require.NotNil(t, beat.Waiting)
	require.Equal(t, 1, *beat.Waiting)

	// The fence tells each reason by a type of its own.
	start := func() error {
		id := bench.NewRunID(j.key, "workflow", "activity", 1)
		_, err := b.collector.StartRun(t.Context(), id, b.runStart(t, id, r))
		return err
	}
	require.ErrorIs(t, start(), apiclient.ErrOutdated)
	_, err = b.admin.WantVersion(t.Context(), apiclient.WantVersion{Pool: "main"})
	require.NoError(t, err)
	_, err = b.admin.DrainCollector(t.Context(), "c1", "")
	require.NoError(t, err)
	require.ErrorIs(t, start(), apiclient.ErrDraining)
	_, err = b.admin.WantVersion(t.Context(), apiclient.WantVersion{Version: "v1; rm"})
	require.ErrorContains(t, err, "use 1 to 128 letters")
	_, err = b.writer.WantVersion(t.Context(), apiclient.WantVersion{Version: "v1"})
	require.Equal(t, http.StatusForbidden, problemOf(t, err).Status)
}

// Removed by force, a live collector is refused at once, with its token.
func TestALiveCollectorIsRemovedOnlyByForce(t *testing.T) {
	t.Parallel()
	b := setup(t, invitedOnly)
	own := b.enrol(t, "c1")
	r, err := own.RegisterCollector(t.Context(), unnamed("c1"))
	require.NoError(t, err)
	err = b.admin.RemoveCollector(t.Context(), "c1", false)
	require.Equal(t, "urn:benchloom:live-collector", problemOf(t, err).Type)
	require.NoError(t, b.admin.RemoveCollector(t.Context(), "c1", true))
	_, err = own.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{Epoch: r.Collector.Epoch})
	require.ErrorIs(t, err, apiclient.ErrUnauthorized)
	require.ErrorIs(t, b.admin.RemoveCollector(t.Context(), "c1", true), apiclient.ErrNotFound)
}
