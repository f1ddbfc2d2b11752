package tune

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrNotPermitted: this process may not change the settings. Nothing was changed.
var ErrNotPermitted = errors.New("changing this machine's settings needs root")

// Steps at which [Tuner.Reach] is called.
const (
	// StepStored: the originals are on disk.
	StepStored = "tune-stored"
	// StepTuned: one setting has been changed.
	StepTuned = "tune-changed"
	// StepComplete: all settings have been changed, and the file says so.
	StepComplete = "tune-complete"
	// StepRestoring: the file says that restoring has begun.
	StepRestoring = "tune-restoring"
	// StepRestored: one setting has its original value.
	StepRestored = "tune-restored"
)

// Tuner changes and restores the settings of a machine.
type Tuner struct {
	Machine

	// Now is the clock.
	Now func() time.Time
	// Reach is called at each step, for failure tests; nil does nothing.
	Reach func(ctx context.Context, step string)
	// Open returns the setting at a path; nil opens files below the root.
	Open func(path string) Setting
}

// Changed is a setting that was given another value.
type Changed struct {
	Name string `json:"name"`
	Path string `json:"path"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Refused is a setting that keeps its value.
type Refused struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Wanted string `json:"wanted"`
	Reason string `json:"reason"`
}

// Outcome describes what was changed.
type Outcome struct {
	// Restored had their original values put back. With Tune, these are settings of an earlier tuning.
	Restored []Changed `json:"restored,omitempty"`
	Set      []Changed `json:"set,omitempty"`
	NotSet   []Refused `json:"not_set,omitempty"`
	// NotRestored are still tuned; their originals stay on disk.
	NotRestored []Refused `json:"not_restored,omitempty"`
	// Restarted: the machine has started anew since it was tuned, which reset its settings.
	Restarted bool `json:"restarted,omitempty"`
	// Interrupted: the earlier tuning or restoring was cut short.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Tune changes the settings that disturb measurements on the machine's CPUs. An
// earlier tuning is restored first. Settings that cannot be changed are listed in the
// outcome. The error is [ErrBusy] if another process changes them now, and
// [ErrNotPermitted] if this process lacks the permission for all of them. If the
// context ends, changes are undone.
func (t Tuner) Tune(ctx context.Context) (Outcome, error) {
	var out Outcome
	earlier, err := t.archive().read()
	if err != nil {
		return out, err
	}
	if earlier == nil {
		// A caller who may not change anything does not create a directory either.
		if possible, err := t.possible(&out); err != nil || !possible {
			return out, err
		}
	}
	unlock, err := t.archive().lock(true)
	if err != nil {
		return out, fmt.Errorf("%w; no setting was changed", err)
	}
	defer unlock()
	kept, err := t.restore(ctx, &out)
	if err != nil {
		return out, err
	}
	report, err := t.Inspect() // the earlier tuning had taken CPUs offline
	if err != nil {
		return out, err
	}
	j := journal{Version: journalVersion, At: t.Now().UTC(), Boot: t.boot(), CPUs: report.MeasuringCPUs, Settings: kept}
	for _, r := range report.changes() {
		if slices.ContainsFunc(kept, func(k record) bool { return k.Path == r.Path }) {
			continue // it could not be restored, so its present value is no original
		}
		s := t.open(r.Path)
		if r.Original, err = s.Read(); err == nil {
			err = s.Writable()
		}
		if err != nil {
			out.NotSet = append(out.NotSet, r.refused(r.Tuned, err))
			continue
		}
		j.Settings = append(j.Settings, r)
	}
	if len(j.Settings) == 0 {
		return out, nil
	}
	if err := t.archive().write(j); err != nil {
		return out, fmt.Errorf("%w; no setting was changed", err)
	}
	t.reach(ctx, StepStored)
	return out, t.apply(ctx, j, len(kept), &out)
}

// possible reports whether at least one setting needs to be changed and can be. If
// none can, the outcome lists them; the error is [ErrNotPermitted] for lack of a
// permission.
func (t Tuner) possible(out *Outcome) (bool, error) {
	report, err := t.Inspect()
	if err != nil {
		return false, err
	}
	denied := false
	var refused []Refused
	for _, r := range report.changes() {
		err := t.open(r.Path).Writable()
		if err == nil {
			return true, nil
		}
		denied = denied || errors.Is(err, fs.ErrPermission)
		refused = append(refused, r.refused(r.Tuned, err))
	}
	out.NotSet = refused
	if denied {
		return false, fmt.Errorf("%w; nothing was changed", ErrNotPermitted)
	}
	return false, nil
}

// apply makes the changes of a stored journal, starting at index first.
func (t Tuner) apply(ctx context.Context, j journal, first int, out *Outcome) error {
	made := slices.Clone(j.Settings[:first])
	for _, r := range j.Settings[first:] {
		if ctx.Err() != nil {
			_, err := t.restore(context.WithoutCancel(ctx), out)
			out.Set = nil
			return errors.Join(context.Cause(ctx), err)
		}
		s := t.open(r.Path)
		if err := s.Write(r.Tuned); err != nil {
			out.NotSet = append(out.NotSet, r.refused(r.Tuned, err))
			if back := putBack(s, r.Original); back != nil {
				made = append(made, r)
			}
			continue
		}
		if r.Original != r.Tuned {
			out.Set = append(out.Set, r.changed(r.Original, r.Tuned))
		}
		made = append(made, r)
		t.reach(ctx, StepTuned)
	}
	j.Settings, j.Complete = made, true
	if len(made) == 0 {
		return t.archive().remove()
	}
	if err := t.archive().write(j); err != nil {
		return err
	}
	t.reach(ctx, StepComplete)
	return nil
}

// Restore puts the original values back, in reverse order. Without an earlier tuning
// it does nothing. Settings that cannot be restored are listed in the outcome, and
// their originals stay on disk.
func (t Tuner) Restore(ctx context.Context) (Outcome, error) {
	return t.restoreIf(ctx, func(*journal) bool { return true })
}

// Recover restores the settings if an earlier process ended while it was changing
// or restoring them. It leaves alone a complete tuning, and one that is under way.
func (t Tuner) Recover(ctx context.Context) (Outcome, error) {
	out, err := t.restoreIf(ctx, func(j *journal) bool { return !j.Complete && j.isOf(t.boot()) })
	if errors.Is(err, ErrBusy) {
		return Outcome{}, nil
	}
	return out, err
}

func (t Tuner) restoreIf(ctx context.Context, wanted func(*journal) bool) (Outcome, error) {
	var out Outcome
	// Most machines were never tuned: no lock, and no directory for one.
	if j, err := t.archive().read(); err != nil || j == nil || !wanted(j) {
		return out, err
	}
	unlock, err := t.archive().lock(false)
	if err != nil {
		return out, err
	}
	defer unlock()
	if j, err := t.archive().read(); err != nil || j == nil || !wanted(j) {
		return out, err
	}
	_, err = t.restore(ctx, &out)
	return out, err
}

// restore returns the settings that keep their tuned values. The lock is held.
func (t Tuner) restore(ctx context.Context, out *Outcome) (kept []record, err error) {
	j, err := t.archive().read()
	if err != nil || j == nil {
		return nil, err
	}
	if !j.isOf(t.boot()) {
		out.Restarted = true
		return nil, t.archive().remove()
	}
	out.Interrupted = out.Interrupted || !j.Complete
	if j.Complete {
		j.Complete = false
		if err := t.archive().write(*j); err != nil {
			return nil, err
		}
	}
	t.reach(ctx, StepRestoring)
	for _, r := range slices.Backward(j.Settings) {
		s := t.open(r.Path)
		before, err := s.Read()
		if errors.Is(err, fs.ErrNotExist) {
			continue // the device or CPU is gone, with its settings
		}
		if err == nil && before == r.Original {
			continue
		}
		if err := putBack(s, r.Original); err != nil {
			out.NotRestored = append(out.NotRestored, r.refused(r.Original, err))
			kept = append(kept, r)
			continue
		}
		out.Restored = append(out.Restored, r.changed(before, r.Original))
		t.reach(ctx, StepRestored)
	}
	slices.Reverse(kept)
	if len(kept) == 0 {
		return nil, t.archive().remove()
	}
	j.Settings = kept
	return kept, t.archive().write(*j)
}

// putBack writes a value unless the setting has it.
func putBack(s Setting, value string) error {
	if now, err := s.Read(); err == nil && now == value {
		return nil
	}
	return s.Write(value)
}

// Tuned describes the tuning in force.
type Tuned struct {
	At       time.Time `json:"at"`
	Settings int       `json:"settings"`
	Complete bool      `json:"complete"`
}

// Tuned returns the tuning in force, nil if there is none.
func (t Tuner) Tuned() (*Tuned, error) {
	j, err := t.archive().read()
	if err != nil || j == nil || !j.isOf(t.boot()) {
		return nil, err
	}
	return &Tuned{At: j.At, Settings: len(j.Settings), Complete: j.Complete}, nil
}

func (t Tuner) archive() archive { return archive{filepath.Join(t.Root, Dir)} }

func (t Tuner) open(path string) Setting {
	if t.Open != nil {
		return t.Open(path)
	}
	return fileSetting{t.Root, path}
}

func (t Tuner) reach(ctx context.Context, step string) {
	if t.Reach != nil {
		t.Reach(ctx, step)
	}
}

// boot returns the kernel's ID of this start of the machine, empty if it has none.
func (t Tuner) boot() string {
	text, _ := os.ReadFile(filepath.Join(t.Root, "proc/sys/kernel/random/boot_id"))
	return strings.TrimSpace(string(text))
}

func (r record) changed(from, to string) Changed {
	return Changed{Name: r.Name, Path: "/" + r.Path, From: strings.TrimSpace(from), To: strings.TrimSpace(to)}
}

func (r record) refused(wanted string, err error) Refused {
	return Refused{Name: r.Name, Path: "/" + r.Path, Wanted: strings.TrimSpace(wanted), Reason: reasonOf(err)}
}
