package api_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// withSecret is a client with a token that was created.
func (b *bundle) withSecret(t *testing.T, created apiclient.CreatedToken) *apiclient.Client {
	t.Helper()
	c, err := apiclient.New(b.server.URL, created.Secret, b.server.Client())
	require.NoError(t, err)
	return c
}

func (b *bundle) createToken(t *testing.T, token apiclient.NewToken) (apiclient.CreatedToken, *apiclient.Client) {
	t.Helper()
	created, err := b.admin.CreateToken(t.Context(), token)
	require.NoError(t, err)
	return created, b.withSecret(t, created)
}

func TestARevokedTokenIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	created, bob := b.createToken(t, apiclient.NewToken{Owner: "bob", Role: api.RoleWriter})
	_, err := bob.Info(t.Context()) // now it is cached
	require.NoError(t, err)
	_, err = b.admin.RevokeToken(t.Context(), created.ID, apiclient.TokenRevocation{Reason: "bob has left"})
	require.NoError(t, err)
	_, err = bob.Info(t.Context())
	require.ErrorIs(t, err, apiclient.ErrUnauthorized)
	require.ErrorContains(t, err, "the token "+string(created.ID)+" of bob was revoked")
}

func TestAnExpiredTokenIsNoticedSoon(t *testing.T) {
	t.Parallel()
	now := &clock{now: time.Now()}
	b := setup(t, withClock(now))
	_, bob := b.createToken(t, apiclient.NewToken{Owner: "bob", Role: api.RoleReader})
	_, err := bob.Info(t.Context())
	require.NoError(t, err)
	b.past(t, `update access_token set expires_at = now() where owner = 'bob'`)
	now.advance(11 * time.Second)
	_, err = bob.Info(t.Context())
	require.ErrorIs(t, err, apiclient.ErrUnauthorized)
	require.ErrorContains(t, err, "has expired")
}

func TestARotatedTokenHasOneSecretAfterItsOverlap(t *testing.T) {
	t.Parallel()
	b := setup(t)
	created, former := b.createToken(t, apiclient.NewToken{Owner: "bob", Role: api.RoleWriter})
	rotated, err := b.admin.RotateToken(t.Context(), created.ID, apiclient.TokenRotation{OverlapSeconds: 60})
	require.NoError(t, err)
	require.Equal(t, created.ID, rotated.ID)
	require.NotEqual(t, created.Secret, rotated.Secret)
	for _, c := range []*apiclient.Client{former, b.withSecret(t, rotated)} {
		info, err := c.Info(t.Context())
		require.NoError(t, err)
		require.Equal(t, "bob", info.Principal)
	}
	last, err := b.admin.RotateToken(t.Context(), created.ID, apiclient.TokenRotation{})
	require.NoError(t, err)
	for _, c := range []*apiclient.Client{former, b.withSecret(t, rotated)} {
		_, err := c.Info(t.Context())
		require.ErrorIs(t, err, apiclient.ErrUnauthorized)
	}
	_, err = b.withSecret(t, last).Info(t.Context())
	require.NoError(t, err)
}

func TestValidityOfTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	day := int64(24 * 60 * 60)
	never := int64(0)
	for name, c := range map[string]struct {
		token apiclient.NewToken
		days  float64 // 0: for ever
	}{
		"a person's":                 {token: apiclient.NewToken{Owner: "ada", Role: api.RoleAdmin}},
		"a project's":                {token: apiclient.NewToken{Owner: "ci", Role: api.RoleWriter, Project: "go"}, days: 90},
		"a person's, as asked for":   {token: apiclient.NewToken{Owner: "ada", Role: api.RoleAdmin, ValidSeconds: &day}, days: 1},
		"a project's, as asked for":  {token: apiclient.NewToken{Owner: "ci", Role: api.RoleWriter, Project: "go", ValidSeconds: &day}, days: 1},
		"a project's, without bound": {token: apiclient.NewToken{Owner: "ci", Role: api.RoleWriter, Project: "go", ValidSeconds: &never}},
	} {
		created, _ := b.createToken(t, c.token)
		if c.days == 0 {
			require.Nil(t, created.ExpiresAt, name)
			continue
		}
		require.InDelta(t, c.days, created.ExpiresAt.Sub(created.CreatedAt).Hours()/24, 0.01, name)
	}
}

func TestATokenThatIsInUseIsNotRevokedWithItself(t *testing.T) {
	t.Parallel()
	b := setup(t)
	created, ada := b.createToken(t, apiclient.NewToken{Owner: "ada", Role: api.RoleAdmin})
	_, err := ada.RevokeToken(t.Context(), created.ID, apiclient.TokenRevocation{})
	require.Equal(t, "urn:benchloom:own-token", problemOf(t, err).Type)
	_, err = b.admin.RevokeToken(t.Context(), created.ID, apiclient.TokenRevocation{})
	require.NoError(t, err)
}

func TestATokenOfOneProjectChangesNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	_, err := b.admin.ApplyProject(t.Context(), apiclient.Project{Name: "other", SuiteHash: packed(t, smallSuite).Hash}, false)
	require.NoError(t, err)
	_, ci := b.createToken(t, apiclient.NewToken{Owner: "ci", Role: api.RoleWriter, Project: "other"})
	_, head := b.createToken(t, apiclient.NewToken{Owner: "head", Role: api.RoleAdmin, Project: "other"})

	foreign, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "1.0"})
	require.NoError(t, err)
	own, err := ci.CreateRequest(t.Context(), apiclient.NewRequest{Project: "other", Tag: "1.0"})
	require.NoError(t, err)
	refused := func(err error) {
		t.Helper()
		require.Equal(t, "urn:benchloom:other-project", problemOf(t, err).Type)
		require.ErrorContains(t, err, "may change only project other")
	}
	for _, ref := range []string{string(foreign.ID), "go:1.0"} {
		_, err = ci.CancelRequest(t.Context(), ref, apiclient.Act{})
		refused(err)
	}
	_, err = ci.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "2.0"})
	refused(err)
	// Commands belong to the project adhoc; another project's queue is not its own either.
	_, err = ci.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}})
	refused(err)
	_, err = ci.CreateRequest(t.Context(), apiclient.NewRequest{Project: "other", Type: bench.AdHoc, Tag: "3.0", PlacementWish: apiclient.PlacementWish{Queue: "project:go"}})
	refused(err)
	_, err = head.PauseQueue(t.Context(), "go", apiclient.Act{Reason: "a test"})
	refused(err)
	_, err = head.ApplyProject(t.Context(), apiclient.Project{Name: "new"}, false)
	refused(err)
	// Nor may it do what concerns the whole service.
	_, err = head.CreateToken(t.Context(), apiclient.NewToken{Owner: "head", Role: api.RoleAdmin})
	refused(err)
	_, err = head.InvalidateResults(t.Context(), apiclient.Invalidation{Act: apiclient.Act{Reason: "a test"}, Project: "other"})
	refused(err)
	_, err = head.DrainCollector(t.Context(), "c1", "")
	refused(err)

	_, err = ci.CancelRequest(t.Context(), string(own.ID), apiclient.Act{})
	require.NoError(t, err)
	_, err = head.PauseQueue(t.Context(), "other", apiclient.Act{Reason: "a test"})
	require.NoError(t, err)
	list, err := ci.Requests(t.Context(), apiclient.RequestQuery{Project: "go"})
	require.NoError(t, err, "reading is not restricted")
	require.Len(t, list.Requests, 1)
}

func TestWhatChangesSomethingIsInTheAudit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	created, _ := b.createToken(t, apiclient.NewToken{Owner: "ci", Role: api.RoleWriter, Project: "go"})
	r, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "1.0"})
	require.NoError(t, err)
	_, err = b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "1.0"}) // again: nothing changes
	require.NoError(t, err)
	_, err = b.admin.DrainCollector(t.Context(), "c1", "")
	require.NoError(t, err)
	_, err = b.admin.WantVersion(t.Context(), apiclient.WantVersion{Version: "v2"})
	require.NoError(t, err)
	invited, err := b.admin.InviteCollector(t.Context(), invite("c2"))
	require.NoError(t, err)
	_, err = b.nobody.EnrollCollector(t.Context(), apiclient.Enrolment{Token: invited.Token, SecretHash: sha256Hex("x")})
	require.NoError(t, err)
	require.NoError(t, b.admin.RemoveCollector(t.Context(), "c2", true))
	_, err = b.admin.ApplyProject(t.Context(), apiclient.Project{Name: "go"}, true) // a dry run
	require.NoError(t, err)
	_, err = b.admin.DrainCollector(t.Context(), "none", "")
	require.ErrorIs(t, err, apiclient.ErrNotFound)

	list, err := b.admin.Audit(t.Context(), apiclient.AuditQuery{Limit: 50})
	require.NoError(t, err)
	var got []string
	for _, o := range slices.Backward(list.Operations) {
		require.True(t, o.Changed)
		require.NotZero(t, o.At)
		require.NotContains(t, o.Message+string(o.Detail), invited.Token)
		require.NotContains(t, o.Message+string(o.Detail), created.Secret)
		got = append(got, o.Who+": "+o.Action+" "+o.Subject)
	}
	suite := packed(t, smallSuite).Hash
	require.Equal(t, []string{
		"wanda: suite upload " + suite, "ada: project apply go", "ada: token create " + string(created.ID), "wanda: request create " + string(r.ID),
		"ada: collector drain c1", "ada: collector want-version all pools", "ada: collector invite c2", "c2: collector enroll c2", "ada: collector remove c2",
	}, got)

	// Values of a configuration may be secrets: only the names of settings are recorded.
	secret := apiclient.Project{Name: "go", SuiteHash: suite, Config: bench.ProjectConfig{Description: "hunter2"}}
	_, err = b.admin.ApplyProject(t.Context(), secret, false)
	require.NoError(t, err)
	text := b.send(t, api.RoleAdmin, http.MethodGet, "/api/v1/audit?limit=1", "").body
	require.Contains(t, text, "description")
	require.NotContains(t, text, "hunter2")
}
