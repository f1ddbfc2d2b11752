//go:build linux

// Command attacker is a benchmark that means harm. It tries one thing by its name, which
// must fail:
//
//	attacker TARGETS NAME
//
// TARGETS is a file with what the attacker knows of the machine, as JSON: more than any
// real one would. It prints what it reached and exits with 0, which ends the test, or
// prints what refused it and exits with 1.
//
// Nothing it does outlasts its job or hurts the machine if it succeeds: it opens and does
// not write, asks for a signal to be possible and does not send it, and takes no more of
// anything than twice the limit that it attacks, and stays with what is looked at only from
// time to time. Where that is not enough, it goes on only as an unprivileged user.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Targets describes the machine and the service to the attacker.
type Targets struct {
	// State is the state directory of the service, Slots the directories of collectors in it.
	State string
	Slots []string
	// Needle begins every planted secret; no file of the attacker's holds it in one piece.
	Needle []string
	// Processes of the service.
	Processes []int
	// VictimFile is a file in the work directory of another slot.
	VictimFile string
	// Artifact is the attacker's own, and so is Suite, where the file of targets is. They must not
	// change.
	Artifact string
	Suite    string `json:"-"`
	// Socket of Postgres, UISocket of Temporal's Web UI; the rest are addresses as HOST:PORT.
	Socket, UISocket, API, Temporal, UI string
	Metrics                             []string
	Namespace, TaskQueue                string
	// Workflow is the ID of one that runs.
	Workflow string
	// Routes are the API's that write, as METHOD PATH.
	Routes []string
	// Outside are files that nothing may change, Kept is a file that a suite of another project keeps on the attacker's slot.
	Outside, Kept string
	// Shared are folders that all users of the machine share; they may be patterns.
	Shared []string
	// CPUs are those that the attacker may use.
	CPUs []int
	// Memory and Disk are the limits, in bytes; Files is that of files, PIDs that of processes.
	Memory, Disk int64
	Files, PIDs  int
}

// attack does something that must be refused. Its error says what refused it; nil and what
// was reached mean that nothing did.
type attack func(t Targets) (reached string, err error)

var attacks = map[string]attack{
	// What must not be read.
	"tokens":         tokens,
	"pass-env":       passedEnvironment,
	"environments":   environments,
	"command-lines":  commandLines,
	"memory-of":      memoryOfOthers,
	"open-files":     openFilesOfOthers,
	"roots":          rootsOfOthers,
	"spool-read":     spoolRead,
	"logs":           logs,
	"record":         record,
	"slot-read":      slotRead,
	"descriptors":    descriptors,
	"shared-memory":  sharedMemory,
	"hidden-folders": hiddenFolders,
	// What must not be written.
	"spool-write":    spoolWrite,
	"artifact-write": artifactWrite,
	"suite-write":    suiteWrite,
	"suites-write":   suitesWrite,
	"slot-write":     slotWrite,
	"slot-plant":     slotPlant,
	"proc-sys":       procSys,

	"cache-of-another-suite": keptWrite,
	"cache-by-a-command":     keptWrite,
	"hostname":               hostname,
	"modules":                modules,
	// What must not be reached.
	"postgres":      postgres,
	"ports":         ports,
	"temporal":      temporal,
	"temporal-task": temporalTask,
	"temporal-kill": temporalKill,
	"temporal-ui":   temporalUI,
	"api":           apiWrites,
	"raw-sockets":   rawSockets,
	// What must hold it.
	"cgroup-parent":   cgroupParent,
	"cgroup-stay":     cgroupStay,
	"cgroup-mount":    cgroupMount,
	"cgroup-agent":    cgroupAgent,
	"mounts":          mounts,
	"unmounts":        unmounts,
	"user-namespace":  userNamespace,
	"namespaces":      namespaces,
	"devices":         devices,
	"setuid":          setuid,
	"signals":         signals,
	"signals-all":     signalsAll,
	"ptrace":          ptrace,
	"priority":        priority,
	"affinity":        affinity,
	"core-dump":       coreDump,
	"double-fork":     doubleFork,
	"children":        children,
	"fork-bomb":       forkBomb,
	"disk":            fillDisk,
	"disk-temp":       fillTemp,
	"disk-shm":        fillShared,
	"left-behind":     leaveBehind,
	"inodes":          fillInodes,
	"disk-cache":      fillCache,
	"inodes-cache":    fillCacheInodes,
	"memory":          fillMemory,
	"output":          flood,
	"names":           hostileNames,
	"link-as-output":  linkAsOutput,
	"pipe-as-output":  pipeAsOutput,
	"link-for-a-step": linkForAStep,
}

func main() {
	if len(os.Args) < 3 {
		fail(errors.New("usage: attacker TARGETS NAME"))
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		fail(err)
	}
	var t Targets
	if err := json.Unmarshal(text, &t); err != nil {
		fail(err)
	}
	t.Suite = filepath.Dir(os.Args[1])
	switch name := os.Args[2]; name {
	case stayName:
		stay()
	case crashName:
		crash()
	case orphanName:
		fail(startStaying(os.Args[1]))
	case insideName:
		report(insideUserNamespace(t))
	default:
		do := attacks[name]
		if do == nil {
			fail(fmt.Errorf("there is no attack %q", name))
		}
		report(do(t))
	}
}

// report prints how an attack went and exits; what only prepares something for its job has
// reached nothing.
func report(reached string, err error) {
	if reached == "" && err == nil {
		os.Exit(0)
	}
	if err == nil {
		fmt.Fprintln(os.Stdout, "REACHED:", reached)
		os.Exit(0)
	}
	fmt.Fprintln(os.Stdout, "refused:", err)
	os.Exit(1)
}

func fail(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stdout, "broken:", err)
	os.Exit(3)
}

// stay ignores time for longer than any test lasts.
func stay() {
	time.Sleep(10 * time.Minute)
	os.Exit(4)
}

// anyOf makes one attack of several tries: the first that succeeds is what was reached.
func anyOf(tries ...func() (string, error)) (string, error) {
	var refused error
	for _, try := range tries {
		reached, err := try()
		if err == nil {
			return reached, nil
		}
		refused = errors.Join(refused, err)
	}
	if refused == nil {
		refused = errors.New("there was nothing to try")
	}
	return "", refused
}
