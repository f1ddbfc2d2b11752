package flame

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/google/pprof/profile"
)

// ParseFiles reads the profiles of one format as one. Of several, those without samples are
// left out: most processes of a build may be too short.
func ParseFiles(format Format, files []io.Reader) (*profile.Profile, error) {
	var merged *profile.Profile
	var short error
	for n, file := range files {
		p, err := Parse(format, file)
		switch {
		case errors.Is(err, ErrNoSamples):
			short = err
			continue
		case err != nil && len(files) > 1:
			return nil, fmt.Errorf("file %d of %d: %w", n+1, len(files), err)
		case err != nil:
			return nil, err
		case merged == nil:
			merged = p
			continue
		}
		// Merge reads the type of periods, which formats other than pprof do not have.
		for _, each := range []*profile.Profile{merged, p} {
			if each.PeriodType == nil {
				each.PeriodType = &profile.ValueType{}
			}
		}
		// One by one, so that no more than two are in memory.
		if merged, err = profile.Merge([]*profile.Profile{merged, p}); err != nil {
			return nil, fmt.Errorf("%w: file %d of %d cannot be added to those before: %w", ErrNotAProfile, n+1, len(files), err)
		}
		if len(merged.Sample) > MaxStacks || len(merged.Function) > MaxFunctions {
			return nil, fmt.Errorf("%w: %d files together have more than %d stacks or %d functions", ErrNotAProfile, n+1, MaxStacks, MaxFunctions)
		}
	}
	if merged == nil {
		return nil, short
	}
	return merged, nil
}

// ShowFirst makes a type of samples the one that is shown by default.
func ShowFirst(p *profile.Profile, sampleType string) error {
	if !slices.Contains(Types(p), sampleType) {
		_, err := index(p, sampleType)
		return fmt.Errorf("%w: %w", ErrNotAProfile, err)
	}
	p.DefaultSampleType = sampleType
	return nil
}
