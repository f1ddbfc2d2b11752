package blobs

import (
	"context"
	"errors"
	"time"
)

// collectedAtOnce bounds the digests of one question about their use.
const collectedAtOnce = 500

// Collected counts the files that [Collect] removed.
type Collected struct {
	Files int
	Bytes int64
}

// Collect removes the files that were stored before a time and that nobody uses. used returns those of the digests that somebody refers to.
//
// A content that is stored and referred to again between the question about its use and its removal would be lost: the time has to be so long
// ago that nobody repeats an upload of then.
func Collect(ctx context.Context, from Store, before time.Time, used func(context.Context, []string) ([]string, error)) (Collected, error) {
	var removed Collected
	old := make(map[string]int64)
	remove := func() error {
		digests := make([]string, 0, len(old))
		for d := range old {
			digests = append(digests, d)
		}
		kept, err := used(ctx, digests)
		if err != nil {
			return err
		}
		for _, d := range kept {
			delete(old, d)
		}
		var errs []error
		for d, size := range old {
			if err := from.Delete(ctx, Digest(d)); err != nil {
				errs = append(errs, err)
				continue
			}
			removed.Files++
			removed.Bytes += size
		}
		clear(old)
		return errors.Join(errs...)
	}
	for b, err := range from.All(ctx) {
		if err != nil {
			return removed, err
		}
		if b.Stored.Before(before) {
			old[string(b.Digest)] = b.Size
		}
		if len(old) == collectedAtOnce {
			if err := remove(); err != nil {
				return removed, err
			}
		}
	}
	if len(old) == 0 {
		return removed, nil
	}
	return removed, remove()
}
