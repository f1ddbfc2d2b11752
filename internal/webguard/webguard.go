// Package webguard keeps web pages of others away from a server that a browser can reach:
// it decides by the headers of a request whether it was meant for this server, and whether
// a foreign page has made it.
//
// It must not know what is served, nor who may see it: programs send what headers they like,
// and only a token stops them.
package webguard

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// Guard knows the hosts that its server answers for: every loopback address and localhost,
// the address at which a connection was accepted, and the names that it was made with.
type Guard struct {
	names   map[string]bool
	foreign http.CrossOriginProtection
}

// New returns a guard that also allows the given host names and IP addresses, written
// without a port. The error names the first that is none.
func New(allowed ...string) (*Guard, error) {
	g := &Guard{names: map[string]bool{"localhost": true}}
	for _, host := range allowed {
		name := canonical(host)
		if !valid(name) {
			return nil, fmt.Errorf("the allowed host %q is invalid: write a host name or an IP address without scheme and port, such as bench.example.com", host)
		}
		g.names[name] = true
	}
	return g, nil
}

// Hosts lists the allowed names in order.
func (g *Guard) Hosts() []string {
	var names []string
	for name := range g.names {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// canonical writes a host as it is compared: IP addresses in their shortest form, names in
// lower case and without the dot of the root.
func canonical(host string) string {
	bare := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if address, err := netip.ParseAddr(bare); err == nil {
		return address.Unmap().WithZone("").String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// valid reports whether a canonical host is an IP address or a name.
func valid(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	known := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_'
	}
	return host != "" && len(host) <= 253 && !strings.HasPrefix(host, ".") && strings.IndexFunc(host, func(r rune) bool { return !known(r) }) < 0
}

// Loopback reports whether a host is localhost or a loopback address.
func Loopback(host string) bool {
	name := canonical(host)
	address, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && address.IsLoopback()
}

// Refusal is why a request is not answered. Detail is for people and names the remedy.
type Refusal struct {
	Status int
	// Type is [apiclient.ProblemForeignHost] or [apiclient.ProblemForeignOrigin].
	Type, Detail string
}

// Check returns why a request must not be answered; nil: it may be.
//
// A name of an attacker that resolves to this server ("DNS rebinding") makes a foreign page
// one of the same origin; only its Host header tells. Pages that do not go so far are told
// by what browsers say of the origin. Reading is refused to them like writing, except for
// following a link: that shows a page to a person and nothing to other pages.
func (g *Guard) Check(r *http.Request) *Refusal {
	if !g.mine(r) {
		return &Refusal{http.StatusMisdirectedRequest, apiclient.ProblemForeignHost,
			fmt.Sprintf("this server does not answer for the host %.100q: use an address that it listens on, or start it with --allowed-host and this name without its port (BENCHLOOM_ALLOWED_HOSTS)", r.Host)}
	}
	if followsLink(r) {
		return nil
	}
	// The library lets reading pass.
	asked := *r
	asked.Method = http.MethodPost
	if g.foreign.Check(&asked) != nil {
		return &Refusal{http.StatusForbidden, apiclient.ProblemForeignOrigin,
			"a page of another origin has made this request; programs should send neither Origin nor Sec-Fetch-Site, and pages cannot use this server"}
	}
	return nil
}

// mine reports whether a request names this server as its host.
func (g *Guard) mine(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	name := canonical(host)
	if g.names[name] {
		return true
	}
	address, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	return address.IsLoopback() || address == local(r)
}

// local returns the address at which the server has accepted a request's connection; zero
// if it is not known.
func local(r *http.Request) netip.Addr {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if at == nil {
		return netip.Addr{}
	}
	address, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return netip.Addr{}
	}
	return address.Addr().Unmap().WithZone("")
}

// followsLink reports whether a browser asks for a page to show it by itself.
func followsLink(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Origin") == "" &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// Handler answers refused requests with a problem document and leaves others to next.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Protect(w.Header())
		refused := g.Check(r)
		if refused == nil {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(refused.Status)
		// It fails only if the client is gone.
		_ = json.NewEncoder(w).Encode(apiclient.Problem{
			Type: refused.Type, Title: http.StatusText(refused.Status), Status: refused.Status, Detail: refused.Detail,
		})
	})
}

// Protect adds the headers that keep an answer out of foreign pages.
func Protect(header http.Header) {
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("X-Frame-Options", "DENY")
}
