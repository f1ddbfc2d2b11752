package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/measure"
)

// Setting is one value that the kernel shows as a file. A [Tuner] calls its methods from one
// goroutine, and Write only while it has locked the settings; it is never nil.
type Setting interface {
	// Path is relative to the root of the file system.
	Path() string
	// Read returns the value byte by byte, its newline included.
	Read() (string, error)
	// Writable returns the reason if the value cannot be written. It changes nothing.
	Writable() error
	// Write sets the value, reads it back, and fails if the kernel holds another.
	Write(value string) error
}

// fileSetting is a [Setting] below a root directory.
type fileSetting struct{ root, path string }

func (s fileSetting) Path() string { return s.path }

func (s fileSetting) file() string { return filepath.Join(s.root, s.path) }

func (s fileSetting) Read() (string, error) {
	content, err := os.ReadFile(s.file())
	return string(content), err
}

func (s fileSetting) Writable() error {
	f, err := os.OpenFile(s.file(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func (s fileSetting) Write(value string) error {
	f, err := os.OpenFile(s.file(), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	// The kernel takes or refuses a value in a single write.
	_, err = f.WriteString(value)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	got, err := s.Read()
	if err != nil {
		return fmt.Errorf("reading it back: %w", err)
	}
	if !sameValue(s.path, got, value) {
		return fmt.Errorf("the kernel keeps %q instead of %q", strings.TrimSpace(got), strings.TrimSpace(value))
	}
	return nil
}

// sameValue compares two values of the setting at path. The kernel writes lists and
// masks of CPUs in a form of its own.
func sameValue(path, a, b string) bool {
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	if a == b {
		return true
	}
	parse := measure.ParseCPUList
	switch name := filepath.Base(path); {
	case name == "default_smp_affinity" || name == "cpumask":
		parse = parseMask
	case !strings.HasSuffix(name, "_list"):
		return false
	}
	cpusA, errA := parse(a)
	cpusB, errB := parse(b)
	return errA == nil && errB == nil && slices.Equal(cpusA, cpusB)
}

// parseMask reads a bitmap of CPUs in the kernel's format: groups of eight
// hexadecimal digits, the highest CPUs first, "3,ffffffff".
func parseMask(text string) (measure.CPUList, error) {
	digits := strings.ReplaceAll(strings.TrimSpace(text), ",", "")
	bits, ok := new(big.Int).SetString(digits, 16)
	if !ok || bits.Sign() < 0 {
		return nil, fmt.Errorf("%q is not a mask of CPUs", text)
	}
	var cpus []int
	for cpu := range bits.BitLen() {
		if bits.Bit(cpu) == 1 {
			cpus = append(cpus, cpu)
		}
	}
	return measure.NewCPUList(cpus...)
}

// formatMask is the reverse of [parseMask].
func formatMask(cpus measure.CPUList) string {
	bits := new(big.Int)
	for _, cpu := range cpus {
		bits.SetBit(bits, cpu, 1)
	}
	digits := bits.Text(16)
	var groups []string
	for ; len(digits) > 8; digits = digits[:len(digits)-8] {
		groups = append(groups, digits[len(digits)-8:])
	}
	groups = append(groups, digits)
	slices.Reverse(groups)
	return strings.Join(groups, ",")
}

// reasonOf returns an error's cause in words, without the path, which is shown
// beside it.
func reasonOf(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
