package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// Reasons for refusing an enrolment token.
var (
	// ErrEnrolled reports that the name's collector is enrolled already, or that another
	// machine has used the token.
	ErrEnrolled = errors.New("enrolled already")
	// ErrInvitationExpired reports that the token was not used in time.
	ErrInvitationExpired = errors.New("the invitation has expired")
)

// Invitation is a row of collector_invitation: the configuration for a collector's name.
type Invitation struct {
	Name          string
	Target        bench.Target
	SizeClass     bench.SizeClass
	Pool          string
	Labels        map[string]string
	BenchmarkSets []string
	// MachineType is hw, vm or dc.
	MachineType  string
	MachineGroup string
	Devices      []string
	InvitedBy    string
	InvitedAt    time.Time
	ExpiresAt    time.Time
	// EnrolledAt is the time of enrolment; nil: not yet.
	EnrolledAt *time.Time
}

const invitationColumns = `i.name, i.target, i.size_class, i.pool, i.labels, i.benchmark_sets, i.machine_type, i.machine_group, i.devices, i.invited_by, i.invited_at, i.expires_at, i.enrolled_at`

// InviteCollector configures a collector by name and makes the secret with the given
// SHA-256 the only token that enrols it, for the duration validity. Earlier invitations
// of the name become void. The name of an enrolled collector goes to another machine
// only with replace, otherwise the error is ErrEnrolled; the collector's present token
// works until the new machine has enrolled.
func (s *Store) InviteCollector(ctx context.Context, i Invitation, tokenHash []byte, validity time.Duration, replace bool) (Invitation, error) {
	if i.Labels == nil {
		i.Labels = map[string]string{}
	}
	invited, err := one[Invitation](ctx, s.pool, `
		insert into collector_invitation as i (name, target, size_class, pool, labels, benchmark_sets, machine_type, machine_group, devices,
			token_hash, invited_by, expires_at)
		values (@name, @target, @size_class, @pool, @labels, @benchmark_sets, @machine_type, @machine_group, @devices,
			@token_hash, @invited_by, now() + make_interval(secs => @validity))
		on conflict (name) do update set target = excluded.target, size_class = excluded.size_class, pool = excluded.pool,
			labels = excluded.labels, benchmark_sets = excluded.benchmark_sets, machine_type = excluded.machine_type,
			machine_group = excluded.machine_group, devices = excluded.devices, token_hash = excluded.token_hash,
			invited_by = excluded.invited_by, invited_at = now(), expires_at = excluded.expires_at, enrolled_at = null
		where i.enrolled_at is null or @replace
		returning `+invitationColumns,
		pgx.NamedArgs{
			"name": i.Name, "target": i.Target, "size_class": i.SizeClass, "pool": i.Pool, "labels": i.Labels, "benchmark_sets": list(i.BenchmarkSets),
			"machine_type": cmp.Or(i.MachineType, "hw"), "machine_group": i.MachineGroup, "devices": list(i.Devices),
			"token_hash": tokenHash, "invited_by": i.InvitedBy, "validity": validity.Seconds(), "replace": replace,
		})
	if errors.Is(err, ErrNotFound) {
		err = ErrEnrolled // the only reason for writing no row
	}
	return invited, wrap("inviting collector "+i.Name, err)
}

// Invitation reads the configuration for a collector's name; ErrNotFound if there is
// none.
func (s *Store) Invitation(ctx context.Context, name string) (Invitation, error) {
	i, err := one[Invitation](ctx, s.pool, `select `+invitationColumns+` from collector_invitation i where i.name = $1`, name)
	return i, wrap("reading the configuration of collector "+name, err)
}

// InvitationByToken reads the invitation whose enrolment token has this SHA-256;
// ErrNotFound if there is none.
func (s *Store) InvitationByToken(ctx context.Context, tokenHash []byte) (Invitation, error) {
	i, err := one[Invitation](ctx, s.pool, `select `+invitationColumns+` from collector_invitation i where i.token_hash = $1`, tokenHash)
	return i, wrap("reading an invitation", err)
}

// EnrollCollector exchanges an enrolment token for the collector's own token: the secret
// with the given SHA-256, which replaces any earlier one of the name. Repeating the
// exchange changes nothing. It returns ErrNotFound if no invitation has this token,
// ErrEnrolled if it was used for another secret, and ErrInvitationExpired.
func (s *Store) EnrollCollector(ctx context.Context, tokenHash, secretHash []byte) (Invitation, error) {
	var enrolled Invitation
	err := s.inTx(ctx, "enrolling a collector", func(tx pgx.Tx) error {
		type state struct {
			Name       string
			SecretHash []byte
			Used       bool
			Expired    bool
		}
		found, err := one[state](ctx, tx, `
			select name, secret_hash, enrolled_at is not null as used, expires_at < now() as expired
			from collector_invitation where token_hash = $1 for update`, tokenHash)
		switch {
		case err != nil:
			return err
		case found.Used && !bytes.Equal(found.SecretHash, secretHash):
			return ErrEnrolled
		case !found.Used && found.Expired:
			return ErrInvitationExpired
		}
		if _, err := tx.Exec(ctx, `delete from access_token where collector = $1 and hash <> $2`, found.Name, secretHash); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			insert into access_token (hash, kind, owner, role, collector) values ($1, 'collector', $2, 'collector', $2)
			on conflict (hash) do nothing`, secretHash, found.Name); err != nil {
			return err
		}
		enrolled, err = one[Invitation](ctx, tx, `
			update collector_invitation as i set enrolled_at = coalesce(i.enrolled_at, now()), secret_hash = $2
			where i.name = $1 returning `+invitationColumns, found.Name, secretHash)
		return err
	})
	return enrolled, err
}

// WantedVersion is a row of wanted_version.
type WantedVersion struct {
	// Pool is empty for all pools without a version of their own.
	Pool    string
	Version string
	SetBy   string
	SetAt   time.Time
}

// WantVersion sets the version that the collectors of a pool should run. An empty pool
// means all pools without a version of their own; an empty version means any.
func (s *Store) WantVersion(ctx context.Context, pool, version, who string) error {
	var err error
	if version == "" {
		_, err = s.pool.Exec(ctx, `delete from wanted_version where pool = $1`, pool)
	} else {
		_, err = s.pool.Exec(ctx, `
			insert into wanted_version (pool, version, set_by) values ($1, $2, $3)
			on conflict (pool) do update set version = excluded.version, set_by = excluded.set_by, set_at = now()
			where wanted_version.version <> excluded.version`, pool, version, who)
	}
	return wrap("recording the wanted version of pool "+pool, err)
}

// WantedVersions lists the wanted versions by pool, the one for all pools first.
func (s *Store) WantedVersions(ctx context.Context) ([]WantedVersion, error) {
	versions, err := all[WantedVersion](ctx, s.pool, `select pool, version, set_by, set_at from wanted_version order by pool`)
	return versions, wrap("listing the wanted versions", err)
}

// HasOpenJobs reports whether any job of these task queues is open.
func (s *Store) HasOpenJobs(ctx context.Context, taskQueues []string) (bool, error) {
	open, err := value[bool](ctx, s.pool, `
		select exists (select from job_queue where task_queue = any($1) and status in ('queued', 'handed_out', 'in_progress'))`, taskQueues)
	return open, wrap("looking for open jobs in "+strings.Join(taskQueues, ", "), err)
}

// JobsWaiting counts the open jobs of task queues that no collector has begun.
func (s *Store) JobsWaiting(ctx context.Context, taskQueues []string) (int, error) {
	n, err := value[int](ctx, s.pool, `
		select count(*) from job_queue where task_queue = any($1) and status in ('queued', 'handed_out')`, taskQueues)
	return n, wrap("counting the jobs that wait in "+strings.Join(taskQueues, ", "), err)
}
