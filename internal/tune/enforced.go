package tune

import (
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/measure"
)

// Enforcement says whether a limit of benchmarks holds on this machine.
type Enforcement struct {
	Limit measure.Limit `json:"limit"`
	// Purpose says what the limit does for the machine and its jobs.
	Purpose  string `json:"purpose"`
	Enforced bool   `json:"enforced"`
	// Reason and Remedy are empty for a limit that holds.
	Reason string `json:"reason,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Remedies that several limits share.
const (
	remedyGroups    = "run the collector as root, or in a systemd service with Delegate=yes and DelegateSubgroup="
	remedyIsolation = "run the collector as root on Linux; give a container CAP_SYS_ADMIN, and a seccomp profile that allows mount and unshare"
)

// limits lists what a sandbox enforces, the most important first.
var limits = []Enforcement{
	{Limit: measure.LimitAccount, Purpose: "benchmarks run as a user other than root", Remedy: "make accounts with 'benchloom collector setup', or run the collector as an ordinary user"},
	{Limit: measure.LimitFiles, Purpose: "they see and change only files that are for them", Remedy: remedyIsolation},
	{Limit: measure.LimitProcesses, Purpose: "they neither see nor signal other processes", Remedy: remedyIsolation},
	{Limit: measure.LimitNetwork, Purpose: "commands without network: true have no network", Remedy: remedyIsolation},
	{Limit: measure.LimitPrivileges, Purpose: "they gain no rights by programs such as sudo", Remedy: remedyIsolation},
	{Limit: measure.LimitTree, Purpose: "every process of theirs can be killed", Remedy: remedyGroups},
	{Limit: measure.LimitMemory, Purpose: "their memory is limited", Remedy: remedyGroups},
	{Limit: measure.LimitSwap, Purpose: "they do not swap beyond that", Remedy: "switch swapping off: swapoff -a"},
	{Limit: measure.LimitPIDs, Purpose: "the number of their processes is limited", Remedy: remedyGroups},
	{Limit: measure.LimitOpenFiles, Purpose: "their open files are limited", Remedy: "raise the collector's own limit (LimitNOFILE= of systemd)"},
	{Limit: measure.LimitDisk, Purpose: "their disk space is limited", Remedy: "run the collector on Linux"},
	{Limit: measure.LimitInodes, Purpose: "the number of their files is limited", Remedy: "run the collector on Linux"},
	{Limit: measure.LimitCPUs, Purpose: "they stay on their CPUs", Remedy: remedyGroups},
	{Limit: measure.LimitASLR, Purpose: "addresses are the same in every iteration", Remedy: "allow personality(2) to the container"},
	{Limit: measure.LimitNice, Purpose: "their priority can be set", Remedy: "run the collector as root"},
}

// Limits lists all limits of benchmarks, given those that a sandbox with all of them could not enforce.
func Limits(unenforced []measure.Unenforced) []Enforcement {
	list := slices.Clone(limits)
	for i := range list {
		e := &list[i]
		var reasons []string
		for _, u := range unenforced {
			if u.Name == e.Limit {
				reasons = append(reasons, u.Reason)
			}
		}
		if e.Enforced = len(reasons) == 0; e.Enforced {
			e.Remedy = ""
		}
		e.Reason = strings.Join(reasons, "; ")
	}
	return list
}

// OfLimits grades the limits of benchmarks, with the reasons and remedies of those that do not hold.
func OfLimits(list []Enforcement) Finding {
	f := Finding{Name: "limits of benchmarks", Grade: Good, Value: "all hold"}
	var names, reasons, remedies []string
	for _, e := range list {
		if e.Enforced {
			continue
		}
		names, reasons = append(names, string(e.Limit)), append(reasons, string(e.Limit)+": "+e.Reason)
		if !slices.Contains(remedies, e.Remedy) {
			remedies = append(remedies, e.Remedy)
		}
	}
	if len(names) > 0 {
		f.Grade, f.Value = Improvable, "not enforced: "+strings.Join(names, ", ")
		f.Reason, f.Remedy = strings.Join(reasons, "; "), strings.Join(remedies, "; ")
	}
	return f
}
