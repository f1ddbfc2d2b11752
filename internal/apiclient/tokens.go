package apiclient

import (
	"context"
	"net/url"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Token is a token without its secret, which is stored nowhere.
type Token struct {
	ID        bench.TokenID `json:"id"`
	Owner     string        `json:"owner" doc:"The account; of a collector's token, its name."`
	Role      string        `json:"role" enum:"reader,writer,admin,collector"`
	Project   string        `json:"project,omitempty" doc:"The only project that it may change; absent: any."`
	Collector string        `json:"collector,omitempty" doc:"The only collector that it serves; absent: none, or any."`
	CreatedBy string        `json:"created_by,omitempty" doc:"The account that created or rotated it; absent: a token file, or an enrolment."`
	CreatedAt time.Time     `json:"created_at" doc:"Creation of its present secret."`
	ExpiresAt *time.Time    `json:"expires_at,omitempty" doc:"Absent: never."`
	RevokedAt *time.Time    `json:"revoked_at,omitempty"`
}

// TokenList lists tokens by owner and age.
type TokenList struct {
	Tokens []Token `json:"tokens"`
}

// NewToken asks for a token.
type NewToken struct {
	Owner   string `json:"owner" minLength:"1" maxLength:"100" doc:"The account that it acts for."`
	Role    string `json:"role" enum:"reader,writer,admin"`
	Project string `json:"project,omitempty" doc:"The only project that it may change; absent: any. Reading is not restricted."`
	// ValidSeconds is at most ten years.
	ValidSeconds *int64 `json:"valid_seconds,omitempty" minimum:"0" maximum:"315360000" doc:"Validity; 0: for ever; absent: 90 days for a token restricted to a project, else for ever."`
	Reason       string `json:"reason,omitempty" maxLength:"500" doc:"Reason, recorded in the audit."`
}

// CreatedToken is a token with its secret, which no later answer has.
type CreatedToken struct {
	Token
	Secret string `json:"secret"`
}

// TokenRotation gives a token another secret.
type TokenRotation struct {
	OverlapSeconds int64  `json:"overlap_seconds,omitempty" minimum:"0" maximum:"2592000" doc:"Time for which the former secret stays valid, at most 30 days."`
	ValidSeconds   int64  `json:"valid_seconds,omitempty" minimum:"0" maximum:"315360000" doc:"Validity of the new secret; 0: as long as that of the former one."`
	Reason         string `json:"reason,omitempty" maxLength:"500" doc:"Reason, recorded in the audit."`
}

// TokenRevocation ends a token.
type TokenRevocation struct {
	Reason string `json:"reason,omitempty" maxLength:"500" doc:"Reason, recorded in the audit."`
}

// RevokedToken is a token that was revoked.
type RevokedToken struct {
	Token
	Changed bool `json:"changed" doc:"False: it was revoked before."`
}

// Tokens lists tokens; with ended, also those that were revoked or have expired.
func (c *Client) Tokens(ctx context.Context, ended bool) (TokenList, error) {
	query := url.Values{}
	if ended {
		query.Set("all", "true")
	}
	return get[TokenList](ctx, c, v1("tokens"), query)
}

// CreateToken creates a token. Only this answer has its secret.
func (c *Client) CreateToken(ctx context.Context, t NewToken) (CreatedToken, error) {
	return post[CreatedToken](ctx, c, v1("tokens"), t)
}

// RotateToken gives a token another secret. Only this answer has it.
func (c *Client) RotateToken(ctx context.Context, id bench.TokenID, r TokenRotation) (CreatedToken, error) {
	return post[CreatedToken](ctx, c, v1("tokens", string(id), "rotate"), r)
}

// RevokeToken ends a token.
func (c *Client) RevokeToken(ctx context.Context, id bench.TokenID, r TokenRevocation) (RevokedToken, error) {
	return post[RevokedToken](ctx, c, v1("tokens", string(id), "revoke"), r)
}
