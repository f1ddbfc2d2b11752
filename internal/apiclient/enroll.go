package apiclient

import (
	"context"
	"net/http"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// EnrolmentPrefix begins every enrolment token.
const EnrolmentPrefix = "ble_"

// Invite configures a collector and asks for a token that enrols it.
type Invite struct {
	Name          string            `json:"name"`
	Target        bench.Target      `json:"target"`
	SizeClass     bench.SizeClass   `json:"size_class" minimum:"1" maximum:"4096"`
	Pool          string            `json:"pool"`
	Labels        map[string]string `json:"labels,omitempty" doc:"Labels of the machine, such as its rack."`
	BenchmarkSets []string          `json:"benchmark_sets,omitempty" doc:"Benchmark sets that it is meant for; for display only: projects bind sets to pools."`
	MachineType   string            `json:"machine_type,omitempty" doc:"hw, vm or dc; absent: hw."`
	MachineGroup  string            `json:"machine_group,omitempty" doc:"Machine group, such as machines of one make."`
	Devices       []string          `json:"devices,omitempty" maxItems:"100"`
	ValidSeconds  int               `json:"valid_seconds,omitempty" minimum:"0" maximum:"2592000" doc:"Validity of the token; 0: a day."`
	Replace       bool              `json:"replace,omitempty" doc:"Give the name of an enrolled collector to another machine."`
}

// Invitation is the configuration of a collector's name.
type Invitation struct {
	Name          string            `json:"name"`
	Target        bench.Target      `json:"target"`
	SizeClass     bench.SizeClass   `json:"size_class"`
	Pool          string            `json:"pool"`
	Labels        map[string]string `json:"labels,omitempty"`
	BenchmarkSets []string          `json:"benchmark_sets,omitempty"`
	MachineType   string            `json:"machine_type"`
	MachineGroup  string            `json:"machine_group,omitempty"`
	Devices       []string          `json:"devices,omitempty"`
	InvitedBy     string            `json:"invited_by"`
	ExpiresAt     time.Time         `json:"expires_at"`
	// Token enrols the collector, once. Only the answer to the invitation has it.
	Token string `json:"token,omitempty"`
}

// Enrolment exchanges an enrolment token for the right to use a token that the machine
// has generated and that never leaves it.
type Enrolment struct {
	Token      string       `json:"token" maxLength:"128"`
	SecretHash string       `json:"secret_hash" minLength:"64" maxLength:"64" pattern:"^[0-9a-f]*$" doc:"SHA-256 of the collector's own token, in hexadecimal."`
	Host       bench.Target `json:"host,omitempty" doc:"The machine's own target; empty: not known."`
}

// Enrolled is the answer to an enrolment.
type Enrolled struct {
	Invitation Invitation `json:"invitation"`
	// Temporal is the address at which it takes jobs.
	Temporal  string `json:"temporal"`
	Namespace string `json:"namespace"`
}

// OwnToken asks for the right to use a token that the machine has generated and that never
// leaves it, for a collector that nobody has invited.
type OwnToken struct {
	Name       string   `json:"name" doc:"The collector, or a shared host whose slots use the token."`
	SecretHash string   `json:"secret_hash" minLength:"64" maxLength:"64" pattern:"^[0-9a-f]*$" doc:"SHA-256 of the collector's own token, in hexadecimal."`
	Machines   []string `json:"machines" maxItems:"1000" doc:"Machine IDs with which it registers, or those of its slots."`
}

// WantedVersion is the version that the collectors of a pool must run.
type WantedVersion struct {
	Pool    string    `json:"pool" doc:"Empty: all pools without a version of their own."`
	Version string    `json:"version"`
	SetBy   string    `json:"set_by"`
	SetAt   time.Time `json:"set_at"`
}

// WantVersion sets the version that the collectors of a pool must run.
type WantVersion struct {
	Pool    string `json:"pool" doc:"Empty: all pools without a version of their own."`
	Version string `json:"version" doc:"Empty: any."`
}

// WantedVersionList lists all wanted versions, the one for all pools first.
type WantedVersionList struct {
	Versions []WantedVersion `json:"versions"`
}

// InviteCollector configures a collector. Only this answer has the token that enrols
// it.
func (c *Client) InviteCollector(ctx context.Context, invite Invite) (Invitation, error) {
	return post[Invitation](ctx, c, v1("collectors", "invitations"), invite)
}

// EnrollCollector enrols a collector. Repeating the same enrolment returns the same
// answer.
func (c *Client) EnrollCollector(ctx context.Context, enrolment Enrolment) (Enrolled, error) {
	return post[Enrolled](ctx, c, v1("collectors", "enroll"), enrolment)
}

// PutOwnToken gives a collector its own token. The client has the token that collectors
// share. Repeating the call changes nothing.
func (c *Client) PutOwnToken(ctx context.Context, own OwnToken) error {
	_, _, err := c.do(ctx, call{method: http.MethodPut, path: v1("collectors", "own-token"), in: own})
	return err
}

// WantedVersions lists the versions that collectors must run.
func (c *Client) WantedVersions(ctx context.Context) ([]WantedVersion, error) {
	list, err := get[WantedVersionList](ctx, c, v1("wanted-versions"), nil)
	return list.Versions, err
}

// WantVersion sets the version that the collectors of a pool must run.
func (c *Client) WantVersion(ctx context.Context, want WantVersion) ([]WantedVersion, error) {
	var list WantedVersionList
	_, _, err := c.do(ctx, call{method: http.MethodPut, path: v1("wanted-versions"), in: want, out: &list})
	return list.Versions, err
}
