package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// EnrolmentRecord stores invitations and wanted versions of collectors. It knows tokens
// only by their SHA-256.
type EnrolmentRecord interface {
	// InviteCollector returns store.ErrEnrolled when the collector is enrolled already
	// and replace is not set.
	InviteCollector(ctx context.Context, i store.Invitation, tokenHash []byte, validity time.Duration, replace bool) (store.Invitation, error)
	// Invitation and InvitationByToken return store.ErrNotFound without an invitation.
	Invitation(ctx context.Context, name string) (store.Invitation, error)
	InvitationByToken(ctx context.Context, tokenHash []byte) (store.Invitation, error)
	// EnrollCollector returns store.ErrNotFound, store.ErrEnrolled or
	// store.ErrInvitationExpired for a token that cannot be used.
	EnrollCollector(ctx context.Context, tokenHash, secretHash []byte) (store.Invitation, error)
	// EnrollUninvited returns store.ErrInvited, store.ErrEnrolled or store.ErrNameTaken
	// when the name is another machine's.
	EnrollUninvited(ctx context.Context, name string, machines []string, secretHash []byte, offlineAfter time.Duration) error
	// WantVersion sets the version of a pool. An empty pool stands for all pools without
	// their own version, an empty version for any.
	WantVersion(ctx context.Context, pool, version, who string) error
	WantedVersions(ctx context.Context) ([]store.WantedVersion, error)
}

type enrolmentHandlers struct {
	*base
	record EnrolmentRecord
}

func (s *enrolmentHandlers) register() {
	handle(s.base, operation{id: "invite-collector", method: http.MethodPost, path: "/collectors/invitations", need: toAdmin, audit: "collector invite", tag: "collectors", status: http.StatusCreated,
		summary: "Invite a collector: configure it and get its enrolment token", description: "It replaces an earlier invitation of the name. Answers 409 with the type urn:benchloom:enrolled when the name's collector is enrolled already and replace is not set."}, s.inviteCollector)
	handle(s.base, operation{id: "enroll-collector", method: http.MethodPost, path: "/collectors/enroll", need: anyToken, audit: "collector enroll", tag: "collectors", maxBody: factsBody,
		summary: "Exchange an enrolment token for the collector's own token", description: "The machine draws its token, which begins with " + TokenPrefix + ", and sends only the SHA-256. A repeated exchange gives the same answer."}, s.enrollCollector)
	handle(s.base, operation{id: "put-own-token", method: http.MethodPut, path: "/collectors/own-token", need: toEnroll, tag: "collectors", status: http.StatusNoContent,
		summary: "Give a collector that nobody has invited its own token", description: "The machine draws its token, which begins with " + TokenPrefix + ", and sends only the SHA-256. Slots of a shared host use the host's. A repeated call changes nothing. Answers 409 with the type urn:benchloom:enrolled or name-taken when the name is another machine's, 403 with not-yours when it is invited and not-configured when every collector has to be."}, s.putOwnToken)
	handle(s.base, operation{id: "list-wanted-versions", method: http.MethodGet, path: "/wanted-versions", need: toRead, tag: "collectors",
		summary: "List the wanted versions of collectors"}, s.listWantedVersions)
	handle(s.base, operation{id: "want-version", method: http.MethodPut, path: "/wanted-versions", need: toAdmin, audit: "collector want-version", tag: "collectors",
		summary: "Set the wanted version of a pool's collectors", description: "Collectors of another version finish their job and exit."}, s.wantVersion)
}

type inviteCollector struct {
	Body apiclient.Invite
}

// invitationFor is the default validity of an enrolment token.
const invitationFor = 24 * time.Hour

func (s *enrolmentHandlers) inviteCollector(ctx context.Context, in *inviteCollector) (*body[apiclient.Invitation], error) {
	i := in.Body
	if err := bench.CheckName("collector", i.Name); err != nil {
		return nil, err
	}
	if host := bench.HostOfSlot(i.Name); host != "" {
		return nil, invalid("collector %s: names that end like this are those of the slots of shared hosts; invite the host, %s, or choose another name", i.Name, host)
	}
	if _, err := bench.NewPool(i.Target, i.SizeClass, i.Pool); err != nil {
		return nil, err
	}
	if err := checkTraits(i.Labels, i.BenchmarkSets); err != nil {
		return nil, err
	}
	if err := checkMachine(i.MachineType, i.MachineGroup, i.Devices); err != nil {
		return nil, err
	}
	token, err := newToken(s.Random, apiclient.EnrolmentPrefix)
	if err != nil {
		return nil, err
	}
	validity := invitationFor
	if i.ValidSeconds > 0 {
		validity = time.Duration(i.ValidSeconds) * time.Second
	}
	hash := sha256.Sum256([]byte(token))
	invited, err := s.record.InviteCollector(ctx, store.Invitation{
		Name: i.Name, Target: i.Target, SizeClass: i.SizeClass, Pool: i.Pool, Labels: i.Labels, BenchmarkSets: i.BenchmarkSets, InvitedBy: caller(ctx).Owner,
		MachineType: i.MachineType, MachineGroup: i.MachineGroup, Devices: i.Devices,
	}, hash[:], validity, i.Replace)
	if errors.Is(err, store.ErrEnrolled) {
		return nil, problemf(http.StatusConflict, "enrolled", "collector %s is enrolled already; choose another name, or give this one to another machine with --replace", i.Name)
	}
	if err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "collector invited", "collector", i.Name, "replace", i.Replace, "by", caller(ctx).Owner)
	out := invitationOf(invited)
	out.Token = token
	return answer(out, nil)
}

// checkTraits checks labels and benchmark sets of a collector.
func checkTraits(labels map[string]string, sets []string) error {
	for key, value := range labels {
		if err := bench.CheckLabel(key, value); err != nil {
			return err
		}
	}
	for i, set := range sets {
		if err := bench.CheckName("benchmark set", set); err != nil {
			return err
		}
		if slices.Contains(sets[:i], set) {
			return invalid("benchmark set %s is named twice", set)
		}
	}
	return nil
}

// checkMachine checks type, group and devices of a collector's machine.
func checkMachine(machineType, group string, devices []string) error {
	if machineType != "" {
		if err := bench.CheckMachineType(machineType); err != nil {
			return err
		}
	}
	if group != "" {
		if err := bench.CheckName("machine group", group); err != nil {
			return err
		}
	}
	for _, d := range devices {
		if err := bench.CheckParameter("device", d); err != nil {
			return err
		}
	}
	return nil
}

func invitationOf(i store.Invitation) apiclient.Invitation {
	return apiclient.Invitation{
		Name: i.Name, Target: i.Target, SizeClass: i.SizeClass, Pool: i.Pool, Labels: i.Labels, BenchmarkSets: i.BenchmarkSets,
		MachineType: i.MachineType, MachineGroup: i.MachineGroup, Devices: i.Devices,
		InvitedBy: i.InvitedBy, ExpiresAt: i.ExpiresAt,
	}
}

type enrollCollector struct {
	Body apiclient.Enrolment
}

func (s *enrolmentHandlers) enrollCollector(ctx context.Context, in *enrollCollector) (*body[apiclient.Enrolled], error) {
	if !strings.HasPrefix(in.Body.Token, apiclient.EnrolmentPrefix) {
		return nil, invalid("this is no enrolment token: those begin with %s and are made with 'benchloom collector invite'", apiclient.EnrolmentPrefix)
	}
	secret, err := secretHash(in.Body.SecretHash)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256([]byte(in.Body.Token))
	if err := s.fits(ctx, hash[:], in.Body.Host); err != nil {
		return nil, err
	}
	enrolled, err := s.record.EnrollCollector(ctx, hash[:], secret)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, unknownInvitation()
	case errors.Is(err, store.ErrEnrolled):
		return nil, problemf(http.StatusConflict, "enrolled", "this enrolment token was used already; each enrols one machine once: have a new one made with 'benchloom collector invite'")
	case errors.Is(err, store.ErrInvitationExpired):
		return nil, problemf(http.StatusGone, "invitation-expired", "this enrolment token has expired; have a new one made with 'benchloom collector invite'")
	case err != nil:
		return nil, err
	}
	s.Log.InfoContext(ctx, "collector enrolled", "collector", enrolled.Name)
	return answer(apiclient.Enrolled{Invitation: invitationOf(enrolled), Temporal: s.TemporalAddress, Namespace: s.Namespace}, nil)
}

func secretHash(text string) ([]byte, error) {
	hash, err := hex.DecodeString(text)
	if err != nil || len(hash) != sha256.Size {
		return nil, invalid("secret_hash is no SHA-256 in hexadecimal")
	}
	return hash, nil
}

type putOwnToken struct {
	Body apiclient.OwnToken
}

func (s *enrolmentHandlers) putOwnToken(ctx context.Context, in *putOwnToken) (*none, error) {
	name := in.Body.Name
	if err := bench.CheckName("collector", name); err != nil {
		return nil, err
	}
	if host := bench.HostOfSlot(name); host != "" {
		return nil, invalid("collector %s: names that end like this are those of the slots of shared hosts, which use the token of the host, %s; choose another name", name, host)
	}
	if s.InvitedOnly {
		switch _, err := s.record.Invitation(ctx, name); {
		case errors.Is(err, store.ErrNotFound):
			return nil, notConfigured(name)
		case err != nil:
			return nil, err
		}
		return nil, invitedMachine(name)
	}
	secret, err := secretHash(in.Body.SecretHash)
	if err != nil {
		return nil, err
	}
	err = s.record.EnrollUninvited(ctx, name, in.Body.Machines, secret, s.OfflineAfter)
	switch {
	case errors.Is(err, store.ErrInvited):
		return nil, invitedMachine(name)
	case errors.Is(err, store.ErrEnrolled):
		return nil, problemf(http.StatusConflict, "enrolled", "collector %s has its own token, and this machine's state directory does not hold it; choose another name with --name, or give this one away with 'benchloom collector remove %s'", name, name)
	case errors.Is(err, store.ErrNameTaken):
		return nil, s.nameTaken(name)
	case err != nil:
		return nil, err
	}
	s.Log.InfoContext(ctx, "collector has its own token", "collector", name)
	return nil, nil
}

func invitedMachine(name string) error {
	return problemf(http.StatusForbidden, "not-yours", "collector %s is an invited machine; run it where it was enrolled, or choose another name", name)
}

func notConfigured(name string) error {
	return problemf(http.StatusForbidden, "not-configured", "nothing is configured for collector %s; invite it with 'benchloom collector invite %s', then 'benchloom collector enroll' on its machine", name, name)
}

func (s *base) nameTaken(name string) error {
	return conflict(apiclient.ProblemNameTaken, fmt.Errorf("the name %s is taken: another live machine has registered it; choose another name with --name, or stop that one and wait %s", name, s.OfflineAfter))
}

func unknownInvitation() error {
	return problemf(http.StatusNotFound, "unknown-invitation", "no invitation has this enrolment token: it was mistyped, or a newer invitation has replaced it; have a new one made with 'benchloom collector invite'")
}

// fits refuses a machine before its enrolment token is used up.
func (s *enrolmentHandlers) fits(ctx context.Context, tokenHash []byte, host bench.Target) error {
	i, err := s.record.InvitationByToken(ctx, tokenHash)
	if errors.Is(err, store.ErrNotFound) {
		return unknownInvitation()
	}
	if err != nil {
		return err
	}
	return sameArchitecture(i.Name, i.Target, host)
}

// sameArchitecture refuses a machine that cannot run programs for the target. A machine
// that does not report its architecture passes.
func sameArchitecture(name string, target, host bench.Target) error {
	if host == "" || host.Arch() == target.Arch() {
		return nil
	}
	return problemf(http.StatusConflict, "wrong-machine", "collector %s measures %s, but this machine is %s; run it on a machine of that architecture, or configure it for %s", name, target, host, host)
}

// configured completes a registration from the configuration of the collector, and
// refuses one that differs.
func (s *enrolmentHandlers) configured(ctx context.Context, r *apiclient.Registration) error {
	if r.SharedHost != "" && r.SharedHost != bench.HostOfSlot(r.Name) {
		return invalid("collector %s: the slots of shared host %.80s are named after it, such as %.80s-c2-1", r.Name, r.SharedHost, r.SharedHost)
	}
	// The slots of a shared host share its invitation, except for their size classes.
	name := cmp.Or(r.SharedHost, r.Name)
	i, err := s.record.Invitation(ctx, name)
	if r.SharedHost != "" {
		i.SizeClass = r.SizeClass
	}
	switch {
	case errors.Is(err, store.ErrNotFound) && s.InvitedOnly:
		return notConfigured(name)
	case errors.Is(err, store.ErrNotFound):
		if err := checkTraits(r.Labels, r.BenchmarkSets); err != nil {
			return err
		}
		return checkMachine(r.MachineType, r.MachineGroup, r.Devices)
	case err != nil:
		return err
	}
	for _, is := range []struct {
		what             string
		differs          bool
		said, configured any
	}{
		{"target", r.Target != "" && r.Target != i.Target, r.Target, i.Target},
		{"size class", r.SizeClass != 0 && r.SizeClass != i.SizeClass, r.SizeClass, i.SizeClass},
		{"pool", r.Pool != "" && r.Pool != i.Pool, r.Pool, i.Pool},
	} {
		if is.differs {
			return problemf(http.StatusConflict, "not-configured", "collector %s is configured with the %s %v, not %v; leave that out where it is started, or invite it anew with 'benchloom collector invite %s --replace'", name, is.what, is.configured, is.said, name)
		}
	}
	r.Target, r.SizeClass, r.Pool, r.Labels, r.BenchmarkSets = i.Target, i.SizeClass, i.Pool, i.Labels, i.BenchmarkSets
	r.MachineType, r.MachineGroup, r.Devices = i.MachineType, i.MachineGroup, withPrograms(i.Devices, r.Devices)
	return nil
}

// withPrograms adds the programs that a collector has found on its machine to the configured
// devices: nobody configures programs.
func withPrograms(configured, found []string) []string {
	devices := slices.Clone(configured)
	for _, d := range found {
		name, _ := bench.DeviceProgram(d)
		if _, known := bench.ProgramOf(name); known && d == (bench.Program{Name: name}).Device() && !slices.Contains(devices, d) {
			devices = append(devices, d)
		}
	}
	return devices
}

func (s *enrolmentHandlers) listWantedVersions(ctx context.Context, _ *none) (*body[apiclient.WantedVersionList], error) {
	wanted, err := s.record.WantedVersions(ctx)
	if err != nil {
		return nil, err
	}
	list := apiclient.WantedVersionList{Versions: make([]apiclient.WantedVersion, 0, len(wanted))}
	for _, w := range wanted {
		list.Versions = append(list.Versions, apiclient.WantedVersion(w))
	}
	return answer(list, nil)
}

type wantVersion struct {
	Body apiclient.WantVersion
}

// versionPattern matches versions, which become words of command lines.
var versionPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$`)

func (s *enrolmentHandlers) wantVersion(ctx context.Context, in *wantVersion) (*body[apiclient.WantedVersionList], error) {
	if in.Body.Pool != "" {
		if err := bench.CheckName("pool", in.Body.Pool); err != nil {
			return nil, err
		}
	}
	if in.Body.Version != "" && !versionPattern.MatchString(in.Body.Version) {
		return nil, invalid("version %.40q: use 1 to 128 letters, digits, '.', '_', '+' or '-', as 'benchloom version' prints it", in.Body.Version)
	}
	if err := s.record.WantVersion(ctx, in.Body.Pool, in.Body.Version, caller(ctx).Owner); err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "wanted version of collectors changed", "pool", in.Body.Pool, "version", in.Body.Version, "by", caller(ctx).Owner)
	return s.listWantedVersions(ctx, nil)
}
