package measure

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Facts describes the machine as far as results depend on it, naming neither the machine nor its network addresses. A fact that
// the system does not reveal is empty or nil.
type Facts struct {
	Architecture string `json:"architecture"`
	CPUVendor    string `json:"cpu_vendor,omitempty"`
	CPUModel     string `json:"cpu_model,omitempty"`
	// CPUSignature is family, model and stepping (x86) or part, variant and revision (arm).
	CPUSignature string `json:"cpu_signature,omitempty"`
	// LogicalCPUs counts online CPUs; PresentCPUs includes offline ones.
	LogicalCPUs int    `json:"logical_cpus"`
	PresentCPUs int    `json:"present_cpus"`
	Microcode   string `json:"microcode,omitempty"`
	Kernel      string `json:"kernel"`
	// Governor is the frequency governor, several separated by commas when CPUs differ.
	Governor string `json:"governor,omitempty"`
	// SMT is on, off, forceoff, notsupported or notimplemented, as the kernel says.
	SMT   string `json:"smt,omitempty"`
	Turbo *bool  `json:"turbo,omitempty"`
	// BootOptions are the parameters of the kernel's command line that change results, such as "isolcpus=2-3 mitigations=off",
	// in alphabetical order, or "none".
	BootOptions string `json:"boot_options,omitempty"`
	// ASLR is kernel.randomize_va_space: 0 off, 1 without heap, 2 full. Measured commands have it off in any case.
	ASLR *int `json:"aslr,omitempty"`
	// Isolation names what keeps commands from the rest of the machine, separated by commas, or is "none". ReadFacts leaves it
	// empty: it is a property of a collector, not of the machine.
	Isolation   string `json:"isolation,omitempty"`
	MemoryBytes int64  `json:"memory_bytes"`
	// Virtualised reports a visible hypervisor: a CPU flag (x86), an entry in the device tree (arm) or in /sys. Some arm
	// machines have none of them.
	Virtualised bool `json:"virtualised"`
}

// ReadFacts reads the facts from /proc and /sys below root, "/" outside tests. It fails where these are missing, as on
// systems other than Linux.
func ReadFacts(root string) (Facts, error) {
	r := factReader{root}
	cpuinfo, err := os.ReadFile(r.path("proc/cpuinfo"))
	if err != nil {
		return Facts{}, fmt.Errorf("reading the machine's facts: %w", err)
	}
	facts := Facts{
		Architecture: runtime.GOARCH,
		Kernel:       r.text("proc/sys/kernel/osrelease"),
		SMT:          r.text("sys/devices/system/cpu/smt/control"),
		Governor:     r.governors(),
		Turbo:        r.turbo(),
		BootOptions:  r.bootOptions(),
	}
	facts.readCPU(string(cpuinfo))
	for _, sign := range []string{"sys/hypervisor/type", "proc/device-tree/hypervisor"} {
		_, err := os.Stat(r.path(sign))
		facts.Virtualised = facts.Virtualised || err == nil
	}
	if facts.MemoryBytes, err = r.memory(); err != nil {
		return Facts{}, err
	}
	if facts.LogicalCPUs, err = r.countCPUs("online"); err != nil {
		return Facts{}, err
	}
	if facts.PresentCPUs, err = r.countCPUs("present"); err != nil {
		return Facts{}, err
	}
	if level, err := strconv.Atoi(r.text("proc/sys/kernel/randomize_va_space")); err == nil {
		facts.ASLR = &level
	}
	return facts, nil
}

// HardwareID returns a short, stable ID of the hardware: results of machines with different IDs are never compared. It
// covers CPU model, number of CPUs, memory to the nearest GiB (the kernel reserves a varying part of it) and virtualisation,
// but neither settings, which a person can change, nor software versions.
func (f Facts) HardwareID() string {
	const gib = 1 << 30
	text := fmt.Sprintf("%s|%s|%s|%s|%d|%d|%t", f.Architecture, f.CPUVendor, f.CPUModel, f.CPUSignature, f.PresentCPUs,
		(f.MemoryBytes+gib/2)/gib, f.Virtualised)
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// readCPU takes the first processor's entry of /proc/cpuinfo.
func (f *Facts) readCPU(cpuinfo string) {
	fields := map[string]string{}
	for line := range strings.Lines(cpuinfo) {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			if len(fields) > 0 {
				break
			}
			continue
		}
		fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	f.CPUVendor = firstOf(fields, "vendor_id", "CPU implementer")
	f.CPUModel = fields["model name"]
	f.Microcode = fields["microcode"]
	if fields["CPU part"] != "" {
		f.CPUSignature = fields["CPU part"] + "/" + fields["CPU variant"] + "/" + fields["CPU revision"]
	} else if fields["cpu family"] != "" {
		f.CPUSignature = fields["cpu family"] + "/" + fields["model"] + "/" + fields["stepping"]
	}
	for flag := range strings.FieldsSeq(fields["flags"]) {
		f.Virtualised = f.Virtualised || flag == "hypervisor"
	}
}

func firstOf(fields map[string]string, names ...string) string {
	for _, name := range names {
		if fields[name] != "" {
			return fields[name]
		}
	}
	return ""
}

type factReader struct{ root string }

func (r factReader) path(name string) string { return filepath.Join(r.root, name) }

// text returns a file's trimmed content; empty if it cannot be read.
func (r factReader) text(name string) string {
	content, err := os.ReadFile(r.path(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

func (r factReader) governors() string {
	files, _ := filepath.Glob(r.path("sys/devices/system/cpu/cpufreq/policy*/scaling_governor"))
	var distinct []string
	seen := map[string]bool{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if governor := strings.TrimSpace(string(content)); err == nil && !seen[governor] {
			seen[governor] = true
			distinct = append(distinct, governor)
		}
	}
	return strings.Join(distinct, ",")
}

// turbo reads Intel's driver, which says when turbo is off, or another driver, which says when boost is on.
func (r factReader) turbo() *bool {
	var on bool
	switch noTurbo, boost := r.text("sys/devices/system/cpu/intel_pstate/no_turbo"), r.text("sys/devices/system/cpu/cpufreq/boost"); {
	case noTurbo != "":
		on = noTurbo == "0"
	case boost != "":
		on = boost == "1"
	default:
		return nil
	}
	return &on
}

// bootOptions are the parameters that isolate CPUs or change their speed; see
// Documentation/admin-guide/kernel-parameters.txt of Linux.
var bootOptions = []string{
	"amd_pstate", "cpufreq.default_governor", "cpuidle.off", "idle", "intel_idle.max_cstate", "intel_pstate", "irqaffinity", "isolcpus",
	"maxcpus", "mitigations", "nohz", "nohz_full", "nosmt", "preempt", "processor.max_cstate", "rcu_nocbs", "skew_tick", "spectre_v2",
	"transparent_hugepage",
}

// bootOptions returns [Facts.BootOptions], empty if the command line cannot be read.
func (r factReader) bootOptions() string {
	line := r.text("proc/cmdline")
	if line == "" {
		return ""
	}
	var found []string
	for option := range strings.FieldsSeq(line) {
		if option == "--" {
			break // the rest is for init
		}
		if name, _, _ := strings.Cut(option, "="); slices.Contains(bootOptions, name) {
			found = append(found, strings.ReplaceAll(option, "|", " "))
		}
	}
	if len(found) == 0 {
		return "none"
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}

func (r factReader) memory() (int64, error) {
	for line := range strings.Lines(r.text("proc/meminfo")) {
		if value, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kibibytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("reading the machine's memory: %w", err)
			}
			return kibibytes << 10, nil
		}
	}
	return 0, errors.New("reading the machine's memory: no MemTotal in /proc/meminfo")
}

func (r factReader) countCPUs(which string) (int, error) {
	content, err := os.ReadFile(r.path("sys/devices/system/cpu/" + which))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && which == "present" {
			return r.countCPUs("online")
		}
		return 0, fmt.Errorf("counting CPUs: %w", err)
	}
	list, err := ParseCPUList(string(content))
	if err != nil {
		return 0, fmt.Errorf("counting CPUs: %w", err)
	}
	return len(list), nil
}
