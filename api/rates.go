package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jellydator/ttlcache/v3"
	"golang.org/x/time/rate"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// Rates bound how many calls per second one client may make on average; 0: no bound. Four
// seconds' worth of calls may come at once.
type Rates struct {
	// Token bounds the calls with one token.
	Token float64
	// Address bounds the calls without a token from one address, or from one network of 64
	// bits in IPv6.
	Address float64
	// Refused bounds the calls with malformed or unknown tokens from one address. Beyond it,
	// only tokens that were known lately are looked up from there.
	Refused float64
}

// DefaultRates are far above what collectors, pages and people need: a collector makes
// about one call a second, and a hundred while it uploads a build.
func DefaultRates() Rates { return Rates{Token: 500, Address: 100, Refused: 5} }

// Validate refuses rates that are negative or not finite.
func (r Rates) Validate() error {
	for _, perSecond := range []float64{r.Token, r.Address, r.Refused} {
		if !(perSecond >= 0) || math.IsInf(perSecond, 1) {
			return errors.New("rates must be finite and not negative")
		}
	}
	return nil
}

// burst is the time, in seconds, whose calls may come at once.
const burst = 4

// maxLimited bounds the clients that a limit remembers; beyond it, those that were silent
// longest are forgotten.
const maxLimited = 10_000

// limit bounds the rate of each of many clients. A nil limit bounds nothing.
type limit[K comparable] struct {
	perSecond rate.Limit
	clients   *ttlcache.Cache[K, *rate.Limiter]
}

func newLimit[K comparable](perSecond float64) *limit[K] {
	if perSecond == 0 {
		return nil
	}
	return &limit[K]{rate.Limit(perSecond), ttlcache.New(ttlcache.WithCapacity[K, *rate.Limiter](maxLimited))}
}

func (l *limit[K]) of(client K) *rate.Limiter {
	item, _ := l.clients.GetOrSetFunc(client, func() *rate.Limiter {
		return rate.NewLimiter(l.perSecond, max(1, int(burst*float64(l.perSecond))))
	})
	return item.Value()
}

// count counts a call, unless it comes too early. It returns the time after which the
// client may call again; 0: the call is admitted.
func (l *limit[K]) count(client K, now time.Time) time.Duration {
	if l == nil {
		return 0
	}
	reserved := l.of(client).ReserveN(now, 1)
	early := reserved.DelayFrom(now)
	if early > 0 {
		reserved.CancelAt(now)
	}
	return early
}

// early returns what count would, and counts nothing.
func (l *limit[K]) early(client K, now time.Time) time.Duration {
	if l == nil {
		return 0
	}
	missing := 1 - l.of(client).TokensAt(now)
	return time.Duration(max(0, missing) / float64(l.perSecond) * float64(time.Second))
}

// limits are the rate limits of the API.
type limits struct {
	now     func() time.Time
	tokens  *limit[[sha256.Size]byte]
	address *limit[netip.Addr]
	refused *limit[netip.Addr]
}

func newLimits(r Rates, now func() time.Time) *limits {
	return &limits{now, newLimit[[sha256.Size]byte](r.Token), newLimit[netip.Addr](r.Address), newLimit[netip.Addr](r.Refused)}
}

// stranger counts a call without a token.
func (l *limits) stranger(ctx context.Context) error {
	if counted(ctx) {
		return nil
	}
	return tooFast(l.address.count(network(client(ctx)), l.now()), "without a token from this address")
}

// known counts a call with a known token.
func (l *limits) known(ctx context.Context, secret string) error {
	if counted(ctx) {
		return nil
	}
	return tooFast(l.tokens.count(sha256.Sum256([]byte(secret)), l.now()), "with this token")
}

// suspicious refuses a token that was not known lately if the address has sent too many
// unknown ones.
func (l *limits) suspicious(ctx context.Context) error {
	return tooFast(l.refused.early(network(client(ctx)), l.now()), "with unknown tokens from this address")
}

// wrong counts a call with a token that is malformed or unknown, and returns the error to
// answer.
func (l *limits) wrong(ctx context.Context, refusal error) error {
	if err := tooFast(l.refused.count(network(client(ctx)), l.now()), "with unknown tokens from this address"); err != nil {
		return err
	}
	return refusal
}

// tooFast returns the problem of a call that came too early; nil if it did not.
func tooFast(early time.Duration, calls string) error {
	if early <= 0 {
		return nil
	}
	seconds := int(math.Ceil(early.Seconds()))
	return huma.ErrorWithHeaders(&huma.ErrorModel{
		Type: apiclient.ProblemRateLimited, Title: http.StatusText(http.StatusTooManyRequests), Status: http.StatusTooManyRequests,
		Detail: fmt.Sprintf("there are too many calls %s; call again after %s, and less often", calls, count(seconds, "second")),
	}, http.Header{"Retry-After": {strconv.Itoa(seconds)}})
}

// limited counts calls of paths that know no tokens as calls of strangers.
func (s *base) limited(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := s.limits.stranger(r.Context()); err != nil {
			s.writeError(w, r, err)
			return
		}
		next(w, r)
	}
}
