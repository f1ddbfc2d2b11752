package api

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// ParseProxies reads the addresses of trusted proxies: each an IP address, or a network
// such as 10.0.0.0/8.
func ParseProxies(list []string) ([]netip.Prefix, error) {
	var proxies []netip.Prefix
	for _, text := range list {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			address, err := netip.ParseAddr(text)
			if err != nil {
				return nil, fmt.Errorf("the trusted proxy %q is invalid: write an IP address, or a network such as 10.0.0.0/8", text)
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		proxies = append(proxies, network.Masked())
	}
	return proxies, nil
}

// forwardedFor is the header in which each proxy adds the address that it was called from.
const forwardedFor = "X-Forwarded-For"

// origin returns the address of the client: that of the connection or, if this is a trusted
// proxy's, the last in the header that is not one. What the client itself
// wrote there comes before it, and never counts. It is zero if the connection has no address.
func origin(r *http.Request, proxies []netip.Prefix) netip.Addr {
	connection, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	at := plainAddress(connection.Addr())
	for _, header := range slices.Backward(r.Header.Values(forwardedFor)) {
		for _, hop := range slices.Backward(strings.Split(header, ",")) {
			if !slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(at) }) {
				return at
			}
			before, err := netip.ParseAddr(strings.TrimSpace(hop))
			if err != nil {
				return at
			}
			at = plainAddress(before)
		}
	}
	return at
}

// plainAddress removes what tells nothing of the client: the zone of an address, and the
// notation of IPv4 addresses in IPv6.
func plainAddress(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// network returns what one client may have for itself: an IPv4 address, or a network of 64
// bits in IPv6.
func network(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return a
	}
	of, err := a.Prefix(64)
	if err != nil {
		return a
	}
	return of.Addr()
}

// forwardedProto is the header in which a proxy says how it was called.
const forwardedProto = "X-Forwarded-Proto"

// reached returns the address at which a client has reached the API, without a path. Only a
// trusted proxy is believed when it says that it ended TLS.
func reached(r *http.Request, proxies []netip.Prefix) url.URL {
	at := url.URL{Scheme: "http", Host: r.Host}
	connection, err := netip.ParseAddrPort(r.RemoteAddr)
	trusted := err == nil && slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(plainAddress(connection.Addr())) })
	if r.TLS != nil || trusted && r.Header.Get(forwardedProto) == "https" {
		at.Scheme = "https"
	}
	return at
}

type reachedKey struct{}

// pageAddress returns the address at which the caller of the API reaches a page; empty: it is
// not known.
func pageAddress(ctx context.Context, path string) string {
	at, _ := ctx.Value(reachedKey{}).(url.URL)
	if at.Host == "" {
		return ""
	}
	return at.String() + path
}

type clientKey struct{}

// client returns the address of the caller, see origin.
func client(ctx context.Context) netip.Addr {
	a, _ := ctx.Value(clientKey{}).(netip.Addr)
	return a
}
