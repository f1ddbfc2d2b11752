package starter

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

func TestATokenGoesToTemporalOnlyWhereNobodyCanReadIt(t *testing.T) {
	for name, c := range map[string]struct {
		address, token string
		environ        map[string]string
		refused        bool
		want           string // the header; empty: none
	}{
		"on loopback":                  {address: "127.0.0.1:7233", token: "blm_x", want: "Bearer blm_x"},
		"on loopback by name":          {address: "localhost:7233", token: "blm_x", want: "Bearer blm_x"},
		"on IPv6 loopback":             {address: "[::1]:7233", token: "blm_x", want: "Bearer blm_x"},
		"at the default address":       {token: "blm_x", want: "Bearer blm_x"},
		"elsewhere in clear":           {address: "temporal.example.com:7233", token: "blm_x", refused: true},
		"elsewhere, TLS switched off":  {address: "192.0.2.1:7233", token: "blm_x", environ: map[string]string{"TEMPORAL_TLS": "false"}, refused: true},
		"elsewhere with TLS":           {address: "temporal.example.com:7233", token: "blm_x", environ: map[string]string{"TEMPORAL_TLS": "true"}, want: "Bearer blm_x"},
		"elsewhere without a token":    {address: "temporal.example.com:7233"},
		"a key of the cluster goes":    {address: "temporal.example.com:7233", token: "blm_x", environ: map[string]string{"TEMPORAL_API_KEY": "key"}},
		"a header of the operator's":   {address: "127.0.0.1:7233", token: "blm_x", environ: map[string]string{"TEMPORAL_GRPC_META_AUTHORIZATION": "Bearer other"}, want: "Bearer other"},
		"another header stays besides": {address: "127.0.0.1:7233", token: "blm_x", environ: map[string]string{"TEMPORAL_GRPC_META_TEAM": "a"}, want: "Bearer blm_x"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.environ {
				t.Setenv(variable, value)
			}
			options, err := Connection{Address: c.address, Token: c.token, Log: slog.New(slog.DiscardHandler)}.options()
			if c.refused {
				require.ErrorContains(t, err, "in clear")
				return
			}
			require.NoError(t, err)
			if c.want == "" {
				require.Nil(t, options.HeadersProvider)
				return
			}
			headers, err := options.HeadersProvider.GetHeaders(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.want, headers["authorization"])
		})
	}
}

// Only networks gain from compression.
func TestNothingIsCompressedOnOneMachine(t *testing.T) {
	for address, none := range map[string]bool{"": true, "127.0.0.1:7233": true, "localhost:7233": true, "[::1]:7233": true, "temporal.example.org:7233": false} {
		options, err := Connection{Address: address, Log: slog.New(slog.DiscardHandler)}.options()
		require.NoError(t, err)
		_, is := options.ConnectionOptions.GrpcCompression.(*client.GrpcCompressionNone)
		require.Equal(t, none, is, address)
	}
}
