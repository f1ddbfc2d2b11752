package collection

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
)

// firstUpload bounds the upload of a block between two blocks. After a failed upload,
// there is none for spareUpload, so that measuring goes on while the API hangs.
const (
	firstUpload = 5 * time.Second
	spareUpload = time.Minute
)

// keep stores a finished block, then tries once to upload it: between two blocks nothing is
// being measured. A block that could not be uploaded stays in the spool until the end of the
// run. If neither the disk nor the API takes blocks and memory is full, keep waits.
func (c *Collector) keep(ctx context.Context, run bench.RunID, number int, block apiclient.Block) error {
	full, err := c.Spool.PutOrHold(ctx, run, number, block)
	if err != nil {
		return err
	}
	if full != nil {
		c.Log.WarnContext(ctx, "the disk takes no block: it is kept in memory until the API or the disk takes it; free space there", "run", run, "block", number, "error", full)
	} else if err := c.Spool.Unload(ctx); err != nil { // the disk may have space again
		c.Log.WarnContext(ctx, "the disk takes no block yet", "run", run, "error", err)
	}
	c.phase(ctx, run, string(jobrun.Uploading))
	if full != nil || !c.Machine.Now().Before(c.spareUntil) {
		c.tryUpload(ctx, run, number, block)
	}
	if err := c.awaitRoom(ctx); err != nil && ctx.Err() == nil {
		return infrastructure(err)
	}
	return ctx.Err()
}

// tryUpload uploads a block once.
func (c *Collector) tryUpload(ctx context.Context, run bench.RunID, number int, block apiclient.Block) {
	bounded, stop := context.WithTimeout(ctx, firstUpload)
	defer stop()
	if err := c.upload(bounded, run, number, block); err != nil && ctx.Err() == nil {
		c.spareUntil = c.Machine.Now().Add(spareUpload)
		c.Log.WarnContext(ctx, "block kept in the spool", "run", run, "block", number, "error", err)
	}
}

// awaitRoom waits until the blocks in memory are few enough.
func (c *Collector) awaitRoom(ctx context.Context) error {
	return apiclient.Retry(ctx, c.Upload, func(ctx context.Context) error {
		if !c.Spool.Overfull() || c.Spool.Unload(ctx) == nil {
			return nil
		}
		for _, s := range c.Spool.inMemory() {
			if err := c.deliver(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

// upload sends a block once and removes it from the spool when the API has it.
func (c *Collector) upload(ctx context.Context, run bench.RunID, number int, block apiclient.Block) error {
	receipt, err := c.API.UploadBlock(ctx, run, number, block)
	if err != nil {
		return fmt.Errorf("uploading block %d of run %s: %w", number, run, err)
	}
	if receipt.Superseded > 0 {
		c.Log.InfoContext(ctx, "results were superseded", "run", run, "block", number, "superseded", receipt.Superseded, "accepted", receipt.Accepted)
	}
	return c.Spool.Remove(run, number)
}

// deliver uploads a spooled block once. A block in memory goes to the disk if only the
// disk takes it.
func (c *Collector) deliver(ctx context.Context, s Spooled) error {
	block, err := c.Spool.Read(s)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was delivered since it was listed
	}
	if err != nil {
		return err
	}
	if err = c.upload(ctx, s.Run, s.Number, block); err != nil && s.packed != nil {
		_ = c.Spool.Unload(ctx) // it is tried again with the next attempt
	}
	return err
}

// flush uploads the spooled blocks of one run, retrying while the API is unreachable.
func (c *Collector) flush(ctx context.Context, run bench.RunID) error {
	spooled, err := c.Spool.List()
	if err != nil {
		return infrastructure(err)
	}
	for _, s := range spooled {
		if s.Run != run {
			continue
		}
		if err := apiclient.Retry(ctx, c.Upload, func(ctx context.Context) error { return c.deliver(ctx, s) }); err != nil {
			return infrastructure(err)
		}
	}
	return nil
}

// flushHeld tries once to upload the blocks in memory: the process may be about to end.
func (c *Collector) flushHeld(ctx context.Context) {
	for _, s := range c.Spool.inMemory() {
		if err := c.deliver(ctx, s); err != nil {
			c.Log.WarnContext(ctx, "block kept in memory: it is lost if this process ends before the API or the disk takes it", "run", s.Run, "block", s.Number, "error", err)
		}
	}
}

// FlushSpool uploads the blocks left by an earlier run or process of this collector. A
// block that the API itself has refused, because its run is unknown, is renamed
// and kept, so that no result is lost and nothing blocks. An answer from anything else,
// such as a proxy, is not a refusal.
func (c *Collector) FlushSpool(ctx context.Context) error {
	strange, err := c.Spool.PutAside()
	for _, why := range strange {
		c.Log.ErrorContext(ctx, "renamed a file in the spool that is not a block", "error", why)
	}
	if err != nil {
		return err
	}
	spooled, err := c.Spool.List()
	if err != nil {
		return err
	}
	for _, s := range spooled {
		err := apiclient.Retry(ctx, c.Begin, func(ctx context.Context) error { return c.deliver(ctx, s) })
		if err == nil {
			continue
		}
		var damaged *damagedError
		if ctx.Err() != nil || !apiclient.IsRefusal(err) && !errors.As(err, &damaged) {
			return err
		}
		c.Log.ErrorContext(ctx, "spooled block refused; kept under another name: 'benchloom collector redeliver' sends it again", "run", s.Run, "block", s.Number, "error", err)
		if err := c.Spool.SetAside(ctx, s, err); err != nil {
			return err
		}
	}
	return nil
}
