package up

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddressesArePublishedWithoutPasswords(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://benchloom@/benchloom?host=%2Frun&port=5432":            "postgres://benchloom@/benchloom?host=%2Frun&port=5432",
		"postgres://ada:secret@db.example.com/bench":                       "postgres://ada:xxxxx@db.example.com/bench",
		"postgresql://db.example.com/bench?password=secret&sslpassword=s2": "postgresql://db.example.com/bench?password=xxxxx&sslpassword=xxxxx",
		"postgres://ada:sec%ret@db/bench":                                  "",
		"host=db password=secret user=ada":                                 "host=db password=xxxxx user=ada",
		`host=db Password = 'a secret\' b' user=ada`:                       "host=db Password = xxxxx user=ada",
		`password=sec\ ret`:                                                "password=xxxxx",
		"":                                                                 "",
	} {
		require.Equal(t, want, withoutPassword(address), address)
	}
}
