package bench

import (
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"
	"time"
)

// ProfileID identifies a stored profile: p and ten letters or digits.
type ProfileID string

// ProfileIDOf derives the ID from the run that made the profile, so that a repeated upload
// has the same.
func ProfileIDOf(run RunID) ProfileID {
	sum := sha256.Sum256([]byte("profile\x00" + run))
	return ProfileID("p" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:10])
}

// ParseProfileID parses a profile's ID.
func ParseProfileID(s string) (ProfileID, error) {
	if len(s) != 11 || s[0] != 'p' || strings.Trim(s[1:], "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return "", invalid("profile ID", s, "a profile's ID is p and ten letters or digits, as 'benchloom profile list PROJECT' shows it")
	}
	return ProfileID(s), nil
}

// SampleTotal is one type of the samples of a profile, such as cpu in nanoseconds, with
// the sum over all samples.
type SampleTotal struct {
	Type  string `json:"type"`
	Unit  string `json:"unit"`
	Total int64  `json:"total"`
}

// CodeProfile describes a stored profile of a program.
type CodeProfile struct {
	ID      ProfileID
	Project string
	Request RequestID
	Job     JobKey
	Run     RunID
	// Collector ran it, on the hardware HardwareID.
	Collector  string
	HardwareID string
	Tag        string
	TestCase
	Profiler string
	// Format of the raw file; the common form is google/pprof's, compressed.
	Format string
	// RawDigest and Digest are the SHA-256 of the raw file and of the common form, in
	// hexadecimal; their sizes are in bytes.
	RawDigest   string
	RawSize     int64
	Digest      string
	Size        int64
	SampleTypes []SampleTotal
	CreatedAt   time.Time
}

// Program is a profiler's program that collectors look for on their machines.
type Program struct {
	Name string
	// Package tells people what to install.
	Package string
}

// programs lists the programs by which a suite's profilers may require to be placed.
var programs = []Program{
	{"perf", "linux-perf (Debian) or linux-tools-generic (Ubuntu)"},
	{"valgrind", "valgrind"},
}

// Programs lists the programs that collectors look for.
func Programs() []Program { return slices.Clone(programs) }

// ProgramOf returns a program by its name.
func ProgramOf(name string) (Program, bool) {
	at := slices.IndexFunc(programs, func(p Program) bool { return p.Name == name })
	if at < 0 {
		return Program{}, false
	}
	return programs[at], true
}

const programPrefix = "program:"

// Device returns the device by which collectors register that they have the program.
func (p Program) Device() string { return programPrefix + p.Name }

// DeviceProgram returns the name of the program that a device stands for; ok is false for
// other devices.
func DeviceProgram(device string) (name string, ok bool) {
	return strings.CutPrefix(device, programPrefix)
}
