package storetest

import (
	"context"

	"github.com/benchloom/benchloom/internal/store"
)

// Mispacked says where the packed results of projects differ from the rows of their
// results: as they are, and once all that is due is packed. It returns nothing where both
// always agree, as they must.
func Mispacked(ctx context.Context, s *store.Store, projects ...string) ([]string, error) {
	var wrong []string
	for _, project := range projects {
		found, err := checkPacked(ctx, s, project)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, found...)
		for {
			n, err := s.PackResults(ctx, project)
			if err != nil {
				return nil, err
			}
			if n == 0 {
				break
			}
		}
		if found, err = checkPacked(ctx, s, project); err != nil {
			return nil, err
		}
		wrong = append(wrong, found...)
	}
	return wrong, nil
}

// checkPacked checks a few artifacts at a time, so that tests meet the bounds, too.
func checkPacked(ctx context.Context, s *store.Store, project string) (wrong []string, err error) {
	const few = 3
	for after := int64(0); ; {
		c, err := s.CheckPacked(ctx, project, after, few)
		if err != nil {
			return nil, err
		}
		if wrong = append(wrong, c.Differences...); c.Next == 0 {
			return wrong, nil
		}
		after = c.Next
	}
}
