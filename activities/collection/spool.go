package collection

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
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

// Spool keeps finished blocks until the API has acknowledged them, so that neither a
// dead network nor a dead collector loses measured results: on disk or, while the disk
// takes none, in memory.
type Spool struct {
	// Points are reached while a block is written.
	Points failpoint.Points

	dir   string
	files files
	most  int // bytes of blocks in memory above which measuring waits

	mu   sync.Mutex
	held []Spooled // blocks that the disk did not take, in order of measurement

	packing sync.Mutex
	// zipper is reused, under packing: making one takes longer than compressing a block.
	zipper *gzip.Writer
}

// maxHeld is the compressed size of blocks in memory, in bytes, above which measuring
// waits. An ordinary block has some kilobytes.
const maxHeld = 64 << 20

// OpenSpool opens the spool in a directory, creating it if necessary; only this
// collector may use it.
func OpenSpool(dir string) (*Spool, error) {
	s := &Spool{dir: dir, files: disk{}, most: maxHeld}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the spool: %w", err)
	}
	if err := s.files.SyncDir(filepath.Dir(dir)); err != nil {
		return nil, fmt.Errorf("making the spool: %w", err)
	}
	return s, nil
}

// Spooled is a block in the spool.
type Spooled struct {
	Run    bench.RunID
	Number int
	path   string // of a block on disk
	packed []byte // the contents of a block in memory
}

const spoolSuffix = ".json.gz"

func fileName(run bench.RunID, number int) string {
	return fmt.Sprintf("%s.%d%s", run, number, spoolSuffix)
}

// Put writes a block durably. Writing it again replaces it.
func (s *Spool) Put(ctx context.Context, run bench.RunID, number int, block apiclient.Block) error {
	packed, err := s.pack(block)
	if err != nil {
		return err
	}
	return s.write(ctx, fileName(run, number), packed)
}

// PutOrHold writes a block durably, or keeps it in memory if the disk does not take it.
// That is no error: full tells why.
func (s *Spool) PutOrHold(ctx context.Context, run bench.RunID, number int, block apiclient.Block) (full, err error) {
	packed, err := s.pack(block)
	if err != nil {
		return nil, err
	}
	if full = s.write(ctx, fileName(run, number), packed); full != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held = append(s.held, Spooled{Run: run, Number: number, packed: packed})
	}
	return full, nil
}

// Overfull reports whether too much is in memory.
func (s *Spool) Overfull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for _, b := range s.held {
		total += len(b.packed)
	}
	return total > s.most
}

// Unload writes the blocks in memory to the disk. Its error is the disk's.
func (s *Spool) Unload(ctx context.Context) error {
	for _, b := range s.inMemory() {
		if err := s.write(ctx, fileName(b.Run, b.Number), b.packed); err != nil {
			return err
		}
		s.forget(b.Run, b.Number)
	}
	return nil
}

func (s *Spool) inMemory() []Spooled {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.held)
}

func (s *Spool) forget(run bench.RunID, number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = slices.DeleteFunc(s.held, func(b Spooled) bool { return b.Run == run && b.Number == number })
}

func (s *Spool) pack(block apiclient.Block) ([]byte, error) {
	s.packing.Lock()
	defer s.packing.Unlock()
	var packed bytes.Buffer
	if s.zipper == nil {
		s.zipper = gzip.NewWriter(&packed)
	} else {
		s.zipper.Reset(&packed)
	}
	if err := errors.Join(json.NewEncoder(s.zipper).Encode(block), s.zipper.Close()); err != nil {
		return nil, fmt.Errorf("encoding a block: %w", err)
	}
	return packed.Bytes(), nil
}

func unpack(r io.Reader) (block apiclient.Block, err error) {
	z, err := gzip.NewReader(r)
	if err == nil {
		err = json.NewDecoder(z).Decode(&block)
	}
	return block, err
}

// write makes a file durable: first its contents, then its name.
func (s *Spool) write(ctx context.Context, name string, packed []byte) error {
	path := filepath.Join(s.dir, name)
	temp, err := s.files.WriteTemp(s.dir, packed)
	if err != nil {
		return fmt.Errorf("spooling a block in %s: %w", s.dir, err)
	}
	s.Points.Reach(ctx, failpoint.Spooling)
	if err := s.files.Rename(temp, path); err != nil {
		return fmt.Errorf("spooling a block in %s: %w", s.dir, errors.Join(err, os.Remove(temp)))
	}
	if err := s.files.SyncDir(s.dir); err != nil {
		return fmt.Errorf("spooling a block in %s: %w", s.dir, err)
	}
	s.Points.Reach(ctx, failpoint.Spooled)
	return nil
}

// List returns the blocks in the spool by run, in order of measurement. It
// removes partly written files of a killed collector and omits files that are
// not blocks; see [Spool.PutAside].
func (s *Spool) List() ([]Spooled, error) {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("reading the spool: %w", err)
	}
	out := s.inMemory()
	for _, f := range files {
		path := filepath.Join(s.dir, f.Name())
		name, ok := strings.CutSuffix(f.Name(), spoolSuffix)
		if !ok {
			if strings.HasPrefix(f.Name(), tempPrefix) {
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

// Files that are kept, but not delivered, have the suffix refused. The reason is beside
// each, in a file with the further suffix why.
const (
	refused = ".refused"
	why     = ".why"
)

// PutAside renames files that are named like blocks, but are not: no collector
// wrote them. It returns the reason for each.
func (s *Spool) PutAside() (reasons []error, err error) {
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
			if err := s.setAside(path, fmt.Errorf("this is no block: %w", no)); err != nil {
				return reasons, fmt.Errorf("putting aside what is no block: %w", err)
			}
			reasons = append(reasons, fmt.Errorf("the spool held %s, which is no block: %w", path, no))
		}
	}
	return reasons, nil
}

// SetAside keeps a block under another name, with the reason beside it: it is not
// delivered any more unless a person asks for that.
func (s *Spool) SetAside(ctx context.Context, b Spooled, reason error) error {
	if b.packed != nil {
		if err := s.write(ctx, fileName(b.Run, b.Number), b.packed); err != nil {
			return err
		}
		s.forget(b.Run, b.Number)
		b.path = filepath.Join(s.dir, fileName(b.Run, b.Number))
	}
	if err := s.setAside(b.path, reason); err != nil {
		return fmt.Errorf("keeping a refused block aside: %w", err)
	}
	return nil
}

func (s *Spool) setAside(path string, reason error) error {
	// A block is as safe without its reason, which is also in the log.
	_ = os.WriteFile(path+refused+why, []byte(reason.Error()+"\n"), 0o600)
	if err := s.files.Rename(path, path+refused); err != nil {
		return err
	}
	return s.files.SyncDir(s.dir)
}

// damagedError reports a file that holds no block.
type damagedError struct {
	path string
	err  error
}

func (e *damagedError) Error() string {
	return fmt.Sprintf("reading the spooled block %s: %v", e.path, e.err)
}
func (e *damagedError) Unwrap() error { return e.err }

// Read reads a spooled block.
func (s *Spool) Read(b Spooled) (apiclient.Block, error) {
	packed := b.packed
	if packed == nil {
		var err error
		if packed, err = os.ReadFile(b.path); err != nil {
			return apiclient.Block{}, fmt.Errorf("reading a spooled block: %w", err)
		}
	}
	block, err := unpack(bytes.NewReader(packed))
	if err != nil {
		return block, &damagedError{b.path, err}
	}
	return block, nil
}

// Remove removes an acknowledged block.
func (s *Spool) Remove(run bench.RunID, number int) error {
	s.forget(run, number)
	err := os.Remove(filepath.Join(s.dir, fileName(run, number)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing an acknowledged block: %w", err)
	}
	return nil
}
