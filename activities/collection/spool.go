package collection

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/measure"
)

// collectionFacts describe the machine during one iteration.
type collectionFacts struct {
	DurationSeconds float64         `json:"duration_seconds"`
	Machine         *machine.Delta  `json:"machine,omitempty"`
	LeftBehind      int             `json:"left_behind,omitempty"`
	Unenforced      []measure.Limit `json:"unenforced,omitempty"`
}

// Spool keeps finished blocks on disk until the API has acknowledged them, so
// that neither a dead network nor a dead collector loses measured results.
type Spool struct{ dir string }

// OpenSpool opens the spool in a directory, creating it if necessary; only this
// collector may use it.
func OpenSpool(dir string) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the spool: %w", err)
	}
	return &Spool{dir: dir}, nil
}

// Spooled is a block in the spool.
type Spooled struct {
	Run    bench.RunID
	Number int
	path   string
}

const spoolSuffix = ".json.gz"

// Put writes a block durably. Writing it again replaces it.
func (s *Spool) Put(run bench.RunID, number int, block apiclient.Block) (err error) {
	path := filepath.Join(s.dir, fmt.Sprintf("%s.%d%s", run, number, spoolSuffix))
	f, err := os.CreateTemp(s.dir, "writing-*")
	if err != nil {
		return fmt.Errorf("spooling a block: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("spooling a block in %s: %w", s.dir, err), ignore(f.Close(), fs.ErrClosed), os.Remove(f.Name()))
		}
	}()
	z := gzip.NewWriter(f)
	if err := json.NewEncoder(z).Encode(block); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// List returns the blocks in the spool by run, in order of measurement. It
// removes partly written files of a killed collector and omits files that are
// not blocks; see [Spool.PutAside].
func (s *Spool) List() ([]Spooled, error) {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("reading the spool: %w", err)
	}
	var out []Spooled
	for _, f := range files {
		path := filepath.Join(s.dir, f.Name())
		name, ok := strings.CutSuffix(f.Name(), spoolSuffix)
		if !ok {
			if strings.HasPrefix(f.Name(), "writing-") {
				if err := os.Remove(path); err != nil {
					return nil, fmt.Errorf("cleaning the spool: %w", err)
				}
			}
			continue
		}
		if block, err := parseSpooled(name); err == nil {
			block.path = path
			out = append(out, block)
		}
	}
	slices.SortFunc(out, func(a, b Spooled) int {
		return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Number, b.Number))
	})
	return out, nil
}

// parseSpooled parses the name of a block's file.
func parseSpooled(name string) (Spooled, error) {
	id, number, _ := strings.Cut(name, ".")
	run, err := bench.ParseRunID(id)
	if err != nil {
		return Spooled{}, err
	}
	n, err := strconv.Atoi(number)
	return Spooled{Run: run, Number: n}, err
}

// refused is the suffix of files that are kept, but not delivered.
const refused = ".refused"

// PutAside renames files that are named like blocks, but are not: no collector
// wrote them. It returns the reason for each.
func (s *Spool) PutAside() (why []error, err error) {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("reading the spool: %w", err)
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), spoolSuffix)
		if !ok {
			continue
		}
		if _, no := parseSpooled(name); no != nil {
			path := filepath.Join(s.dir, f.Name())
			if err := os.Rename(path, path+refused); err != nil {
				return why, fmt.Errorf("putting aside what is no block: %w", err)
			}
			why = append(why, fmt.Errorf("the spool held %s, which is no block: %w", path, no))
		}
	}
	return why, nil
}

// Read reads a spooled block.
func (s *Spool) Read(b Spooled) (block apiclient.Block, err error) {
	f, err := os.Open(b.path)
	if err != nil {
		return block, fmt.Errorf("reading a spooled block: %w", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err == nil {
		err = json.NewDecoder(z).Decode(&block)
	}
	if err != nil {
		return block, fmt.Errorf("reading the spooled block %s: %w", b.path, err)
	}
	return block, nil
}

// Remove removes an acknowledged block.
func (s *Spool) Remove(run bench.RunID, number int) error {
	err := os.Remove(filepath.Join(s.dir, fmt.Sprintf("%s.%d%s", run, number, spoolSuffix)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing an acknowledged block: %w", err)
	}
	return nil
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

// flush uploads the spooled blocks of one run or, if only is empty, of all,
// retrying while the API is unreachable.
func (c *Collector) flush(ctx context.Context, only bench.RunID) error {
	spooled, err := c.Spool.List()
	if err != nil {
		return infrastructure(err)
	}
	for _, s := range spooled {
		if only != "" && s.Run != only {
			continue
		}
		block, err := c.Spool.Read(s)
		if err != nil {
			return infrastructure(err)
		}
		if err := apiclient.Retry(ctx, c.Upload, func(ctx context.Context) error { return c.upload(ctx, s.Run, s.Number, block) }); err != nil {
			return infrastructure(err)
		}
	}
	return nil
}

// FlushSpool uploads the blocks left by an earlier process of this collector. A
// block that the API will never accept, because its run is unknown, is renamed
// and kept, so that no result is lost and nothing blocks.
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
		block, err := c.Spool.Read(s)
		if err == nil {
			err = apiclient.Retry(ctx, c.Upload, func(ctx context.Context) error { return c.upload(ctx, s.Run, s.Number, block) })
		}
		if err != nil {
			if ctx.Err() != nil || apiclient.IsTransient(err) {
				return err
			}
			c.Log.ErrorContext(ctx, "spooled block refused; kept under another name", "run", s.Run, "block", s.Number, "error", err)
			if err := os.Rename(s.path, s.path+refused); err != nil {
				return fmt.Errorf("keeping a refused block aside: %w", err)
			}
		}
	}
	return nil
}
