package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// AppendLog records output of a run from offset on, and returns the offset at which the
// next piece begins. Known output stays. A piece that would leave a gap is refused: the
// returned offset says from where to send. Bytes beyond limit are counted, but not kept.
func (s *Store) AppendLog(ctx context.Context, run bench.RunID, offset int64, data []byte, limit int64) (next int64, err error) {
	err = s.inTx(ctx, "recording output of run "+string(run), func(tx pgx.Tx) error {
		size, err := value[int64](ctx, tx, `select log_size from job_run where id = $1 for update`, run)
		if err != nil {
			return err
		}
		var b pgx.Batch
		if next, err = appendLog(&b, run, size, bench.RunOutput{Offset: offset, Data: data, Limit: limit}); err != nil || next == size {
			return err
		}
		b.Queue(`update job_run set log_size = $2 where id = $1`, run, next)
		return tx.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return 0, err
	}
	return next, nil
}

// appendLog adds to a batch the statement that stores the new part of a piece of output. It
// returns the size of the output from then on, which the caller records with the locked run.
func appendLog(b *pgx.Batch, run bench.RunID, size int64, piece bench.RunOutput) (next int64, err error) {
	if piece.Offset < 0 {
		return size, errors.New("the offset must not be negative")
	}
	if piece.Offset > size || piece.Offset+int64(len(piece.Data)) <= size {
		return size, nil
	}
	fresh := piece.Data[size-piece.Offset:]
	if kept := fresh[:min(int64(len(fresh)), max(0, piece.Limit-size))]; len(kept) > 0 {
		b.Queue(`insert into run_log (run_id, at_offset, data) values ($1, $2, $3)`, run, size, kept)
	}
	return size + int64(len(fresh)), nil
}

// ReadLog reads at most most bytes of a run's output from an offset on, and returns the
// offset at which to continue. If there is no data and the offset is later, the output in
// between was not kept. ErrNotFound reports an unknown run.
func (s *Store) ReadLog(ctx context.Context, run bench.RunID, from int64, most int) (data []byte, next int64, err error) {
	type piece struct {
		AtOffset int64
		Data     []byte
	}
	err = s.inTx(ctx, "reading output of run "+string(run), func(tx pgx.Tx) error {
		size, err := value[int64](ctx, tx, `select log_size from job_run where id = $1`, run)
		if err != nil {
			return err
		}
		from = max(0, from)
		// Pieces have known lengths, so that earlier ones are not read.
		pieces, err := all[piece](ctx, tx, `
			select at_offset, data from run_log
			where run_id = $1 and at_offset + octet_length(data) > $2 and at_offset < $2 + $3 and at_offset < $4
			order by at_offset`, run, from, int64(most), size)
		if err != nil {
			return err
		}
		for _, p := range pieces {
			data = append(data, p.Data[max(0, from-p.AtOffset):]...)
		}
		data = data[:min(len(data), most)]
		next = from + int64(len(data))
		if len(data) == 0 && most > 0 && next < size {
			next = size
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	return data, next, nil
}
