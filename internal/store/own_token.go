package store

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrInvited reports that a collector's name is configured by an invitation.
var ErrInvited = errors.New("the collector is invited")

// EnrollUninvited gives a collector that nobody has invited its own token: the secret with
// the given SHA-256. Slots of a shared host use the host's token. Repeating the call
// changes nothing.
//
// A name has one owner: ErrEnrolled reports that another secret is its token already,
// ErrInvited that it belongs to a machine that is invited. A name for which nobody has a
// token belongs to the machine that has registered it and was heard of within
// offlineAfter, by the database's clock; ErrNameTaken reports that this machine is not
// among machines, the IDs with which the caller registers.
func (s *Store) EnrollUninvited(ctx context.Context, name string, machines []string, secretHash []byte, offlineAfter time.Duration) error {
	return s.inTx(ctx, "enrolling collector "+name, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, "collector "+name); err != nil {
			return err
		}
		invited, err := value[bool](ctx, tx, `select exists (select from collector_invitation where name = $1)`, name)
		if err != nil {
			return err
		}
		if invited {
			return ErrInvited
		}
		owners, err := column[[]byte](ctx, tx, `select hash from access_token where collector = $1`, name)
		if err != nil {
			return err
		}
		for _, hash := range owners {
			if bytes.Equal(hash, secretHash) {
				return nil
			}
		}
		if len(owners) > 0 {
			return ErrEnrolled
		}
		taken, err := value[bool](ctx, tx, `
			select exists (select from collector_config c
				where (c.name = $1 or c.host = $1) and c.machine_id <> all($2) and c.`+heardOf("$3")+`)`, name, list(machines), offlineAfter.Seconds())
		if err != nil {
			return err
		}
		if taken {
			return ErrNameTaken
		}
		tag, err := tx.Exec(ctx, `
			insert into access_token (hash, kind, owner, role, collector) values ($1, 'collector', $2, 'collector', $2)
			on conflict (hash) do nothing`, secretHash, name)
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrEnrolled // the secret is somebody else's
		}
		return err
	})
}
