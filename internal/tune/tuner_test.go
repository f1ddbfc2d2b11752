//go:build unix

package tune_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/tune"
)

const originals = tune.Dir + "/original-settings.json"

func TestTuningAndRestoring(t *testing.T) {
	t.Parallel()
	root := server().write(t)
	tuner := newTuner(root, measure.CPUList{2, 3})

	out, err := tuner.Tune(t.Context())
	require.NoError(t, err)
	require.Empty(t, out.NotSet)
	require.Len(t, out.Set, len(tuned()))
	after := read(t, root)
	require.Contains(t, after, originals)
	require.Equal(t, server().with(tuned()), after.with(files{originals: ""}))
	inForce, err := tuner.Tuned()
	require.NoError(t, err)
	require.Equal(t, &tune.Tuned{At: tuner.Now(), Settings: len(tuned()), Complete: true}, inForce)

	// A complete tuning outlives the process that made it.
	out, err = tuner.Recover(t.Context())
	require.NoError(t, err)
	require.Empty(t, out)
	require.Equal(t, after, read(t, root))

	out, err = tuner.Restore(t.Context())
	require.NoError(t, err)
	require.Len(t, out.Restored, len(tuned()))
	require.False(t, out.Interrupted)
	require.Equal(t, server(), read(t, root))
	out, err = tuner.Restore(t.Context())
	require.NoError(t, err)
	require.Empty(t, out)
}

// A CPU that is offline has no frequency settings and takes no interrupts: it goes
// last and comes back first.
func TestCPUsGoOfflineLastAndComeBackFirst(t *testing.T) {
	t.Parallel()
	tuner := newTuner(server().write(t), measure.CPUList{2})
	out, err := tuner.Tune(t.Context())
	require.NoError(t, err)
	require.Equal(t, "/sys/devices/system/cpu/cpu6/online", out.Set[len(out.Set)-1].Path)
	out, err = tuner.Restore(t.Context())
	require.NoError(t, err)
	require.Equal(t, tune.Changed{Name: "SMT siblings", Path: "/sys/devices/system/cpu/cpu6/online", From: "0", To: "1"}, out.Restored[0])
}

// The kernel switches the boost of every policy with the common one.
func TestBoostOfPoliciesComesBackAsItWas(t *testing.T) {
	t.Parallel()
	const common, first, second = "sys/devices/system/cpu/cpufreq/boost", "sys/devices/system/cpu/cpufreq/policy0/boost", "sys/devices/system/cpu/cpufreq/policy1/boost"
	machine := server().with(files{"sys/devices/system/cpu/intel_pstate/no_turbo": "", common: "1\n", first: "1\n", second: "0\n"})
	root := machine.write(t)
	tuner := newTuner(root, nil)
	tuner.Open = func(path string) tune.Setting {
		s := tune.File(root, path)
		if path != common {
			return s
		}
		return hooked{s, func(value string) error {
			return errors.Join(s.Write(value), tune.File(root, first).Write(value), tune.File(root, second).Write(value))
		}}
	}
	_, err := tuner.Tune(t.Context())
	require.NoError(t, err)
	require.Equal(t, "0\n", read(t, root)[common])
	_, err = tuner.Restore(t.Context())
	require.NoError(t, err)
	require.Equal(t, machine, read(t, root))
}

// hooked is a setting with a write of its own.
type hooked struct {
	tune.Setting
	write func(value string) error
}

func (h hooked) Write(value string) error { return h.write(value) }

func TestTuningAgainForOtherCPUs(t *testing.T) {
	t.Parallel()
	root := server().write(t)
	_, err := newTuner(root, measure.CPUList{2, 3}).Tune(t.Context())
	require.NoError(t, err)
	out, err := newTuner(root, measure.CPUList{1}).Tune(t.Context())
	require.NoError(t, err)
	require.Len(t, out.Restored, len(tuned()))
	after := read(t, root)
	require.Equal(t, "0\n", after["sys/devices/system/cpu/cpu5/online"])
	require.Equal(t, "1\n", after["sys/devices/system/cpu/cpu6/online"])
	require.Equal(t, "0,2-4,6-7\n", after["proc/irq/24/smp_affinity_list"])
	require.Equal(t, "7\n", after["proc/irq/26/smp_affinity_list"])
	_, err = newTuner(root, nil).Restore(t.Context())
	require.NoError(t, err)
	require.Equal(t, server(), read(t, root))
}

// run starts this test binary as a process that acts on the root. It returns the
// number of steps, and whether the process was killed.
func (c child) run(t *testing.T) (steps int, killed bool) {
	t.Helper()
	text, err := json.Marshal(c)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		require.Equal(t, syscall.SIGKILL, status.Signal())
		return 0, true
	}
	require.NoError(t, err, errOut.String())
	steps, err = strconv.Atoi(out.String())
	require.NoError(t, err)
	return steps, false
}

// The next start of anything restores what a killed process left, whatever it was
// doing; and so does the one after, if the restoring is killed, too.
func TestOriginalsComeBackWhereverTuningIsKilled(t *testing.T) {
	t.Parallel()
	cpus := measure.CPUList{2, 3}
	total, killed := child{Root: server().write(t), CPUs: cpus, Action: "tune"}.run(t)
	require.False(t, killed)
	require.Equal(t, len(tuned())+2, total)
	for step := 1; step <= total; step++ {
		t.Run(fmt.Sprintf("killed at step %d", step), func(t *testing.T) {
			t.Parallel()
			root := server().write(t)
			_, killed := child{Root: root, CPUs: cpus, Action: "tune", KillAt: step}.run(t)
			require.True(t, killed)
			left := read(t, root)
			if step == total { // only the exit was missing
				require.Equal(t, server().with(tuned()), left.with(files{originals: ""}))
				_, err := newTuner(root, cpus).Recover(t.Context())
				require.NoError(t, err)
				require.Equal(t, left, read(t, root))
			}
			// The second process is killed between two settings; the third finishes.
			first, second := "recover", "recover"
			switch step % 3 {
			case 1:
				first = "tune" // restores before it tunes
			case 2:
				second = "restore"
			}
			if step == total {
				first, second = "restore", "recover"
			}
			_, killed = child{Root: root, CPUs: cpus, Action: first, KillAt: 1 + step/2}.run(t)
			require.True(t, killed)
			out, err := act(newTuner(root, cpus), second)
			require.NoError(t, err)
			require.True(t, out.Interrupted)
			require.Equal(t, server(), read(t, root))
		})
	}
}

func TestOriginalsComeBackWhereverRestoringIsKilled(t *testing.T) {
	t.Parallel()
	cpus := measure.CPUList{2, 3}
	for step := 1; step <= len(tuned())+1; step++ {
		t.Run(fmt.Sprintf("killed at step %d", step), func(t *testing.T) {
			t.Parallel()
			root := server().write(t)
			_, err := newTuner(root, cpus).Tune(t.Context())
			require.NoError(t, err)
			_, killed := child{Root: root, CPUs: cpus, Action: "restore", KillAt: step}.run(t)
			require.True(t, killed)
			// Tuning starts from the originals again, not from what it finds.
			if step%2 == 0 {
				_, err = newTuner(root, cpus).Tune(t.Context())
				require.NoError(t, err)
				require.Equal(t, server().with(tuned()), read(t, root).with(files{originals: ""}))
				_, err = newTuner(root, cpus).Restore(t.Context())
			} else {
				_, err = newTuner(root, cpus).Recover(t.Context())
			}
			require.NoError(t, err)
			require.Equal(t, server(), read(t, root))
		})
	}
}

// A setting that cannot be restored keeps its original on disk, and the next tuning
// does not take the tuned value for it.
func TestOriginalsAreNeverOverwritten(t *testing.T) {
	t.Parallel()
	root := server().write(t)
	const stuck = "proc/sys/kernel/nmi_watchdog"
	_, err := newTuner(root, nil).Tune(t.Context())
	require.NoError(t, err)
	broken := newTuner(root, nil)
	broken.Open = func(path string) tune.Setting {
		s := tune.File(root, path)
		if path == stuck {
			return hooked{s, func(string) error { return syscall.EIO }}
		}
		return s
	}
	for range 2 {
		out, err := broken.Tune(t.Context())
		require.NoError(t, err)
		require.Equal(t, []tune.Refused{{Name: "NMI watchdog", Path: "/" + stuck, Wanted: "1", Reason: syscall.EIO.Error()}}, out.NotRestored)
	}
	out, err := newTuner(root, nil).Restore(t.Context())
	require.NoError(t, err)
	require.Empty(t, out.NotRestored)
	require.Equal(t, server(), read(t, root))
}

// Nor does it take for an original what somebody else has set since.
func TestAnOriginalOutlivesAChangeByHand(t *testing.T) {
	t.Parallel()
	root := server().write(t)
	const swappiness = "proc/sys/vm/swappiness"
	_, err := newTuner(root, nil).Tune(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, swappiness), []byte("30\n"), 0o644))
	broken := newTuner(root, nil)
	broken.Open = func(path string) tune.Setting {
		s := tune.File(root, path)
		if path != swappiness {
			return s
		}
		return hooked{s, func(value string) error {
			if value == "60\n" {
				return syscall.EIO
			}
			return s.Write(value)
		}}
	}
	out, err := broken.Tune(t.Context())
	require.NoError(t, err)
	for _, set := range out.Set {
		require.NotEqual(t, "/"+swappiness, set.Path)
	}
	_, err = newTuner(root, nil).Restore(t.Context())
	require.NoError(t, err)
	require.Equal(t, server(), read(t, root))
}

func TestARefusedSettingLeavesTheOthers(t *testing.T) {
	t.Parallel()
	root := server().write(t)
	tuner := newTuner(root, measure.CPUList{2, 3})
	const managed, lost = "proc/irq/24/smp_affinity_list", "proc/sys/kernel/timer_migration"
	tuner.Open = func(path string) tune.Setting {
		s := tune.File(root, path)
		switch path {
		case managed:
			return hooked{s, func(string) error { return &fs.PathError{Op: "write", Path: path, Err: syscall.EIO} }}
		case lost: // the kernel takes the value and keeps its own
			return hooked{s, func(string) error { return errors.New(`the kernel keeps "1" instead of "0"`) }}
		}
		return s
	}
	out, err := tuner.Tune(t.Context())
	require.NoError(t, err)
	require.Equal(t, []tune.Refused{
		{Name: "interrupts", Path: "/" + managed, Wanted: "0-1,4-5", Reason: "input/output error"},
		{Name: "timer migration", Path: "/" + lost, Wanted: "0", Reason: `the kernel keeps "1" instead of "0"`},
	}, out.NotSet)
	require.Len(t, out.Set, len(tuned())-2)
	_, err = newTuner(root, nil).Restore(t.Context())
	require.NoError(t, err)
	require.Equal(t, server(), read(t, root))
}

// forbidden is a setting that cannot be opened for writing.
type forbidden struct {
	tune.Setting
	reason error
}

func (f forbidden) Writable() error { return f.reason }

func TestNothingIsTouchedWithoutPermission(t *testing.T) {
	t.Parallel()
	for reason, want := range map[error]error{syscall.EACCES: tune.ErrNotPermitted, syscall.EROFS: nil} {
		root := server().write(t)
		tuner := newTuner(root, measure.CPUList{2, 3})
		tuner.Open = func(path string) tune.Setting { return forbidden{tune.File(root, path), reason} }
		out, err := tuner.Tune(t.Context())
		require.ErrorIs(t, err, want)
		require.Empty(t, out.Set)
		require.Len(t, out.NotSet, len(tuned()))
		require.Equal(t, reason.Error(), out.NotSet[0].Reason)
		require.Equal(t, server(), read(t, root))
	}
}

func TestATunedMachineNeedsNothing(t *testing.T) {
	t.Parallel()
	machine := server().with(tuned()).with(files{"sys/devices/system/cpu/online": "0-5\n"})
	root := machine.write(t)
	out, err := newTuner(root, measure.CPUList{2, 3}).Tune(t.Context())
	require.NoError(t, err)
	require.Empty(t, out)
	require.Equal(t, machine, read(t, root))
}

func TestOneProcessAtATime(t *testing.T) {
	t.Parallel()
	root := server().write(t)
	first := newTuner(root, nil)
	tried := false
	first.Reach = func(_ context.Context, step string) {
		if step != tune.StepStored {
			return
		}
		tried = true
		second := newTuner(root, nil)
		_, err := second.Tune(t.Context())
		require.ErrorIs(t, err, tune.ErrBusy)
		_, err = second.Restore(t.Context())
		require.ErrorIs(t, err, tune.ErrBusy)
		// A collector that starts meanwhile has nothing to repair.
		out, err := second.Recover(t.Context())
		require.NoError(t, err)
		require.Empty(t, out)
	}
	_, err := first.Tune(t.Context())
	require.NoError(t, err)
	require.True(t, tried)
}

func TestACancelledTuningIsUndone(t *testing.T) {
	t.Parallel()
	root := server().write(t)
	tuner := newTuner(root, nil)
	ctx, cancel := context.WithCancel(t.Context())
	changes := 0
	tuner.Reach = func(_ context.Context, step string) {
		if step == tune.StepTuned {
			if changes++; changes == 5 {
				cancel()
			}
		}
	}
	out, err := tuner.Tune(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, out.Restored, 5)
	require.Equal(t, server(), read(t, root))
}

func TestARestartHasRestoredEverything(t *testing.T) {
	t.Parallel()
	root := server().write(t)
	_, err := newTuner(root, nil).Tune(t.Context())
	require.NoError(t, err)
	restarted := server().with(files{"proc/sys/kernel/random/boot_id": "6f1c1b1e-0002\n", "proc/sys/vm/swappiness": "10\n"})
	for name, content := range restarted {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o644))
	}
	inForce, err := newTuner(root, nil).Tuned()
	require.NoError(t, err)
	require.Nil(t, inForce)
	out, err := newTuner(root, nil).Restore(t.Context())
	require.NoError(t, err)
	require.Equal(t, tune.Outcome{Restarted: true}, out)
	require.Equal(t, restarted, read(t, root))
}

func TestASettingThatIsGoneNeedsNoRestoring(t *testing.T) {
	t.Parallel()
	root := server().write(t)
	_, err := newTuner(root, measure.CPUList{2}).Tune(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(root, "proc/irq/24")))
	_, err = newTuner(root, nil).Restore(t.Context())
	require.NoError(t, err)
	require.Equal(t, server().with(files{"proc/irq/24/smp_affinity_list": ""}), read(t, root))
}

// The file with the originals may be damaged, or be made to have root write anywhere.
func TestAnUnfitFileOfOriginalsIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"version": 1, "settings": [`: "restore them by hand",
		`{"version": 2}`:               "another version",
		`{"version": 1, "settings": [{"path": "proc/sys/kernel/core_pattern", "original": "|/tmp/x"}]}`:                     "no setting that benchloom changes",
		`{"version": 1, "settings": [{"path": "proc/irq/../sys/kernel/core_pattern/smp_affinity_list", "original": "|x"}]}`: "no setting that benchloom changes",
	} {
		machine := server().with(files{originals: text})
		root := machine.write(t)
		for _, action := range []string{"tune", "restore", "recover"} {
			_, err := act(newTuner(root, nil), action)
			require.ErrorContains(t, err, want)
		}
		require.Equal(t, machine, read(t, root))
	}
}

func TestWithoutADirectoryForTheOriginalsNothingChanges(t *testing.T) {
	t.Parallel()
	for _, taken := range []string{"original-settings.lock/directory", "original-settings.json.new/directory"} {
		machine := server().with(files{tune.Dir + "/" + taken: "in the way"})
		root := machine.write(t)
		_, err := newTuner(root, nil).Tune(t.Context())
		require.ErrorContains(t, err, "no setting was changed")
		require.Equal(t, machine, read(t, root))
	}
}

// Interrupts of this machine, with everything else hidden: tuning is killed midway,
// and the kernel has its original bytes back. Where they cannot be written, nothing
// happens.
func TestInterruptsOfThisMachine(t *testing.T) {
	t.Parallel()
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		online = []byte("0\n")
	}
	cpus, err := measure.ParseCPUList(string(online))
	require.NoError(t, err)
	root := files{"sys/devices/system/cpu/online": string(online)}.write(t)
	irqs := movable(t)
	for _, irq := range irqs {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "proc/irq"), 0o755))
		require.NoError(t, os.Symlink("/proc/irq/"+irq, filepath.Join(root, "proc/irq", irq)))
	}
	measuring := cpus[len(cpus)-1:]
	if len(irqs) == 0 || len(cpus) < 2 {
		out, err := newTuner(root, measuring).Tune(t.Context())
		require.NoError(t, err)
		require.Empty(t, out)
		return
	}
	before := affinities(t, irqs)
	t.Cleanup(func() { _, _ = newTuner(root, nil).Restore(context.Background()) })
	for step := 1; step <= len(irqs)+2; step++ {
		_, killed := child{Root: root, CPUs: measuring, Action: "tune", KillAt: step}.run(t)
		require.True(t, killed)
		if step > 1 {
			require.NotEqual(t, before, affinities(t, irqs))
		}
		_, err := newTuner(root, nil).Restore(t.Context())
		require.NoError(t, err)
		require.Equal(t, before, affinities(t, irqs))
	}
}

// movable returns at most two interrupts that may be served on every CPU and accept
// their present place.
func movable(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/irq/[0-9]*/smp_affinity_list")
	require.NoError(t, err)
	var irqs []string
	for _, path := range all {
		irq := filepath.Base(filepath.Dir(path))
		s := tune.File("/", strings.TrimPrefix(path, "/"))
		now, err := s.Read()
		if err == nil && strings.ContainsAny(now, "-,") && s.Writable() == nil && s.Write(now) == nil && len(irqs) < 2 {
			irqs = append(irqs, irq)
		}
	}
	slices.Sort(irqs)
	return irqs
}

func affinities(t *testing.T, irqs []string) []string {
	t.Helper()
	var out []string
	for _, irq := range irqs {
		text, err := os.ReadFile("/proc/irq/" + irq + "/smp_affinity_list")
		require.NoError(t, err)
		out = append(out, string(text))
	}
	return out
}
