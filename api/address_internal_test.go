package api

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOriginBelievesOnlyTrustedProxies(t *testing.T) {
	t.Parallel()
	proxies, err := ParseProxies([]string{"10.0.0.0/8", "2001:db8::1"})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		remote    string
		forwarded []string
		want      string
	}{
		"directly":                  {"192.0.2.1:4000", nil, "192.0.2.1"},
		"a claim of its own":        {"192.0.2.1:4000", []string{"127.0.0.1"}, "192.0.2.1"},
		"through a proxy":           {"10.0.0.1:4000", []string{"192.0.2.1"}, "192.0.2.1"},
		"through two":               {"10.0.0.1:4000", []string{"192.0.2.1, 10.9.9.9"}, "192.0.2.1"},
		"through two with a header": {"10.0.0.1:4000", []string{"192.0.2.1", "10.9.9.9"}, "192.0.2.1"},
		"a claim before a proxy":    {"10.0.0.1:4000", []string{"127.0.0.1, 192.0.2.1"}, "192.0.2.1"},
		"a proxy itself":            {"10.0.0.1:4000", nil, "10.0.0.1"},
		"nonsense":                  {"10.0.0.1:4000", []string{"192.0.2.1, unknown"}, "10.0.0.1"},
		"IPv6":                      {"[2001:db8::1]:4000", []string{"2001:db8:1::5"}, "2001:db8:1::5"},
		"IPv4 in IPv6":              {"[::ffff:10.0.0.1]:4000", []string{"::ffff:192.0.2.1"}, "192.0.2.1"},
		"no address":                {"@", []string{"192.0.2.1"}, "invalid IP"},
	} {
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{forwardedFor: c.forwarded}}
		require.Equal(t, c.want, origin(r, proxies).String(), name)
	}
}

func TestNetworkOfAClient(t *testing.T) {
	t.Parallel()
	require.Equal(t, "192.0.2.1", network(netip.MustParseAddr("192.0.2.1")).String())
	require.Equal(t, network(netip.MustParseAddr("2001:db8::1")), network(netip.MustParseAddr("2001:db8::ffff:1")), "one client has a whole network")
	require.NotEqual(t, network(netip.MustParseAddr("2001:db8::1")), network(netip.MustParseAddr("2001:db8:0:1::1")))
	require.Equal(t, netip.Addr{}, network(netip.Addr{}))
}

func FuzzOrigin(f *testing.F) {
	f.Add("192.0.2.1:1", "10.0.0.1, x")
	f.Add("10.0.0.1:1", "::1,,%")
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, remote, forwarded string) {
		r := &http.Request{RemoteAddr: remote, Header: http.Header{forwardedFor: strings.Split(forwarded, "\n")}}
		at := origin(r, proxies)
		connection, err := netip.ParseAddrPort(remote)
		if err != nil {
			require.False(t, at.IsValid())
			return
		}
		if own := plainAddress(connection.Addr()); !slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(own) }) {
			require.Equal(t, own, at)
		}
		_ = network(at)
	})
}
