package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// wantedControllers are the controllers that sandboxes use. The freezer only lists processes, on machines with version 1
// hierarchies and no pids controller.
var wantedControllers = []string{"cpuset", "memory", "pids", "freezer"}

// hierarchy is a mounted control-group tree with the calling process's position in it.
type hierarchy struct {
	// controllers lists the wantedControllers of a version 1 hierarchy; nil for version 2.
	controllers []string
	unified     bool
	mount       string
	// own is the calling process's control group, relative to the mount; outside is the reason if it is not below the mount.
	own     string
	outside string
}

// findHierarchies reads /proc/self/mountinfo and /proc/self/cgroup below root; see proc(5) and cgroups(7).
func findHierarchies(root string) ([]hierarchy, error) {
	mounts, err := os.ReadFile(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("finding control groups: %w", err)
	}
	memberships, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil, fmt.Errorf("finding the own control group: %w", err)
	}
	var found []hierarchy
	for line := range strings.Lines(string(mounts)) {
		h, mountRoot, ok := parseCgroupMount(line)
		if !ok || slices.ContainsFunc(found, h.same) {
			continue
		}
		member := ""
		for entry := range strings.Lines(string(memberships)) {
			if parts := strings.SplitN(strings.TrimSuffix(entry, "\n"), ":", 3); len(parts) == 3 && h.isMembership(parts[1]) {
				member = parts[2]
			}
		}
		switch rel, err := filepath.Rel(mountRoot, member); {
		case member == "":
			h.outside = "the own control group is unknown"
		case err != nil || rel == ".." || strings.HasPrefix(rel, "../"):
			h.outside = fmt.Sprintf("the own control group %s is not below the mounted %s", member, mountRoot)
		default:
			h.own = rel
		}
		found = append(found, h)
	}
	return found, nil
}

// parseCgroupMount reads one line of mountinfo and also returns the root of the mount within its tree.
func parseCgroupMount(line string) (h hierarchy, mountRoot string, ok bool) {
	left, right, cut := strings.Cut(line, " - ")
	fields, super := strings.Fields(left), strings.Fields(right)
	if !cut || len(fields) < 6 || len(super) < 3 || (super[0] != "cgroup" && super[0] != "cgroup2") {
		return hierarchy{}, "", false
	}
	h = hierarchy{mount: unescapeMount(fields[4]), unified: super[0] == "cgroup2"}
	if !h.unified {
		for option := range strings.SplitSeq(super[2], ",") {
			if slices.Contains(wantedControllers, option) {
				h.controllers = append(h.controllers, option)
			}
		}
		if len(h.controllers) == 0 {
			return hierarchy{}, "", false // a named hierarchy, such as systemd's, or a controller without use here
		}
	}
	return h, unescapeMount(fields[3]), true
}

// unescapeMount undoes the octal escapes of mountinfo: space, tab, newline and backslash.
func unescapeMount(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

func (h hierarchy) same(other hierarchy) bool {
	return h.unified == other.unified && slices.Equal(h.controllers, other.controllers)
}

// isMembership reports whether the controllers of a line of /proc/self/cgroup are this hierarchy's.
func (h hierarchy) isMembership(controllers string) bool {
	if h.unified {
		return controllers == ""
	}
	return slices.Contains(strings.Split(controllers, ","), h.controllers[0])
}

func (h hierarchy) has(controller string) bool { return slices.Contains(h.controllers, controller) }
