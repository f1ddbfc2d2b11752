package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheStoreOfFilesIsNamedByAFlag(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]blobFlags{
		"no size":            {at: "", most: "much"},
		"no room":            {at: "", most: ""},
		"no bucket":          {at: "https://s3.example.com", most: "1GiB"},
		"a password":         {at: "https://key:secret@s3.example.com/profiles", most: "1GiB"},
		"a kind that is not": {at: "ftp://example.com/profiles", most: "1GiB"},
	} {
		require.Error(t, f.check(), name)
	}
	none := blobFlags{most: "1GiB"}
	require.NoError(t, none.check())
	store, err := none.open(t.Context())
	require.NoError(t, err)
	require.Nil(t, store)

	dir := filepath.Join(t.TempDir(), "blobs")
	here := blobFlags{at: dir, most: "1GiB"}
	require.NoError(t, here.check())
	_, err = here.open(t.Context())
	require.NoError(t, err)
	require.DirExists(t, dir)
}
