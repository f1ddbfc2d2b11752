package tune

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/benchloom/benchloom/internal/measure"
)

// Dir is the directory below the root that holds the original settings.
const Dir = "var/lib/benchloom-tune"

const (
	journalFile    = "original-settings.json"
	lockFile       = "original-settings.lock"
	journalVersion = 1
)

// ErrBusy: another process is changing or restoring the machine's settings.
var ErrBusy = errors.New("another process is changing this machine's settings; wait until it has ended")

// journal is the file with the original settings. It exists while a setting may
// differ from its original.
type journal struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"`
	// Boot identifies the start of the machine that the originals belong to; empty if the kernel does not tell.
	Boot string `json:"boot_id,omitempty"`
	// CPUs are the CPUs that were kept quiet.
	CPUs measure.CPUList `json:"measuring_cpus,omitempty"`
	// Complete is set once every change has been made. Without it, the process ended midway.
	Complete bool `json:"complete"`
	// Settings are in order of change.
	Settings []record `json:"settings"`
}

// record holds the values of one setting, byte by byte.
type record struct {
	Name     string `json:"name"`
	Path     string `json:"path"`
	Original string `json:"original"`
	Tuned    string `json:"tuned"`
}

// isOf reports whether the originals belong to this start of the machine. A restart
// has reset the settings.
func (j *journal) isOf(boot string) bool { return j.Boot == boot || j.Boot == "" || boot == "" }

// archive is the directory with the journal.
type archive struct{ dir string }

func (a archive) path() string { return filepath.Join(a.dir, journalFile) }

// read returns the journal, nil if there is none.
func (a archive) read() (*journal, error) {
	text, err := os.ReadFile(a.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the original settings: %w", err)
	}
	var j journal
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, fmt.Errorf("reading the original settings from %s: %w; restore them by hand or restart the machine, then remove the file", a.path(), err)
	}
	if j.Version != journalVersion {
		return nil, fmt.Errorf("%s was written by another version of benchloom (format %d, this one reads %d): restore the settings with that version", a.path(), j.Version, journalVersion)
	}
	for _, r := range j.Settings {
		// The file may come from an account that may not write to every path.
		if !mayTune(r.Path) {
			return nil, fmt.Errorf("%s names %q, which is no setting that benchloom changes; nothing is restored: look at the file, and remove it", a.path(), r.Path)
		}
	}
	return &j, nil
}

// write replaces the journal. When it returns, the journal survives a crash of the
// machine; if it fails, the previous journal is still there.
func (a archive) write(j journal) error {
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the original settings: %w", err)
	}
	next := a.path() + ".new"
	if err := writeSynced(next, append(text, '\n')); err != nil {
		return fmt.Errorf("storing the original settings: %w", err)
	}
	if err := os.Rename(next, a.path()); err != nil {
		return fmt.Errorf("storing the original settings: %w", err)
	}
	return a.sync()
}

func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// remove deletes the journal: every setting has its original value.
func (a archive) remove() error {
	if err := os.Remove(a.path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the original settings, which are restored: %w", err)
	}
	return a.sync()
}

// sync makes a rename or removal in the directory durable.
func (a archive) sync() error {
	d, err := os.Open(a.dir)
	if err != nil {
		return fmt.Errorf("syncing the directory of the original settings: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("syncing the directory of the original settings: %w", err)
	}
	return nil
}

// lock keeps other processes from changing settings until the returned function is
// called or the process ends. It creates the directory if create is set.
func (a archive) lock(create bool) (unlock func(), err error) {
	if create {
		err := os.MkdirAll(a.dir, 0o755)
		if errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("%w: %w", ErrNotPermitted, err)
		}
		if err != nil {
			return nil, fmt.Errorf("creating the directory for the original settings: %w", err)
		}
		if err := (archive{filepath.Dir(a.dir)}).sync(); err != nil {
			return nil, err
		}
	}
	l := flock.New(filepath.Join(a.dir, lockFile))
	held, err := l.TryLock()
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: %w", ErrNotPermitted, err)
	case err != nil:
		return nil, fmt.Errorf("locking the original settings: %w", err)
	case !held:
		return nil, ErrBusy
	}
	return func() { _ = l.Close() }, nil
}
