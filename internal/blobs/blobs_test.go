//go:build linux

package blobs_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/blobs"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(putForEver); dir != "" {
		uploadForEver(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

const most = 1 << 20

// stores makes one of each kind, empty.
var stores = map[string]func(t *testing.T) blobs.Store{
	"directory": func(t *testing.T) blobs.Store { return openDirectory(t, t.TempDir(), most) },
	"S3":        func(t *testing.T) blobs.Store { return startS3(t).open(t, most) },
}

func eachStore(t *testing.T, test func(t *testing.T, s blobs.Store)) {
	t.Helper()
	for kind, open := range stores {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func put(t *testing.T, s blobs.Store, content string) blobs.Digest {
	t.Helper()
	digest, size, err := s.Put(t.Context(), strings.NewReader(content), most)
	require.NoError(t, err)
	require.Equal(t, int64(len(content)), size)
	return digest
}

func get(t *testing.T, s blobs.Store, digest blobs.Digest) (string, error) {
	t.Helper()
	file, err := s.Get(t.Context(), digest)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	return string(content), err
}

func list(t *testing.T, s blobs.Store) map[blobs.Digest]int64 {
	t.Helper()
	sizes := map[blobs.Digest]int64{}
	for b, err := range s.All(t.Context()) {
		require.NoError(t, err)
		require.False(t, b.Stored.IsZero())
		sizes[b.Digest] = b.Size
	}
	return sizes
}

func digestOf(content string) blobs.Digest {
	sum := sha256.Sum256([]byte(content))
	return blobs.Digest(hex.EncodeToString(sum[:]))
}

func TestAFileIsFoundByItsContent(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s blobs.Store) {
		large := make([]byte, 300_000)
		_, err := rand.Read(large)
		require.NoError(t, err)
		want := map[blobs.Digest]int64{}
		for _, content := range []string{"", "a profile", string(large)} {
			digest := put(t, s, content)
			require.Equal(t, digestOf(content), digest)
			require.Equal(t, digest, put(t, s, content), "it is kept once")
			back, err := get(t, s, digest)
			require.NoError(t, err)
			require.Equal(t, content, back)
			want[digest] = int64(len(content))
		}
		require.Equal(t, want, list(t, s))
	})
}

func TestADeletedFileIsGone(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s blobs.Store) {
		digest, other := put(t, s, "one"), put(t, s, "other")
		require.NoError(t, s.Delete(t.Context(), digest))
		require.NoError(t, s.Delete(t.Context(), digest), "it is gone, as was wanted")
		_, err := get(t, s, digest)
		require.ErrorIs(t, err, blobs.ErrNotFound)
		require.Equal(t, map[blobs.Digest]int64{other: 5}, list(t, s))
	})
}

func TestNothingButDigestsIsAskedFor(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s blobs.Store) {
		for _, text := range []string{"", "..", "../lock", strings.Repeat("A", 64), strings.Repeat("a", 63), strings.Repeat("/", 64), strings.Repeat("a", 65)} {
			_, err := blobs.ParseDigest(text)
			require.Error(t, err)
			_, err = s.Get(t.Context(), blobs.Digest(text))
			require.Error(t, err)
			require.NotErrorIs(t, err, blobs.ErrNotFound)
			require.Error(t, s.Delete(t.Context(), blobs.Digest(text)))
		}
	})
}

func TestAStoreIsBounded(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s blobs.Store) {
		_, _, err := s.Put(t.Context(), strings.NewReader("twelve bytes"), 11)
		var large *blobs.TooLargeError
		require.ErrorAs(t, err, &large)
		require.Equal(t, int64(11), large.Limit)
		_, _, err = s.Put(t.Context(), strings.NewReader("twelve bytes"), 12)
		require.NoError(t, err, "the limit itself is allowed")

		half := strings.Repeat("x", most/2)
		digest := put(t, s, half)
		_, _, err = s.Put(t.Context(), strings.NewReader(strings.Repeat("y", most/2)), most)
		var full *blobs.FullError
		require.ErrorAs(t, err, &full)
		require.Equal(t, int64(most), full.Most)
		_, _, err = s.Put(t.Context(), strings.NewReader(strings.Repeat("y", 3*most)), 4*most)
		require.ErrorAs(t, err, &full, "no more is received than there can be room for")
		require.Equal(t, digest, put(t, s, half), "what is there needs no room")
		require.Len(t, list(t, s), 2)

		require.NoError(t, s.Delete(t.Context(), digest))
		put(t, s, strings.Repeat("y", most/2))
	})
}

func TestABrokenUploadLeavesNothing(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s blobs.Store) {
		gone := errors.New("the client is gone")
		_, _, err := s.Put(t.Context(), io.MultiReader(strings.NewReader("half of"), iotest.ErrReader(gone)), most)
		require.ErrorIs(t, err, gone)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		_, _, err = s.Put(ctx, strings.NewReader("whole"), most)
		require.Error(t, err)
		require.Empty(t, list(t, s))
	})
}

func TestAListingCanEndEarly(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s blobs.Store) {
		put(t, s, "one")
		put(t, s, "other")
		count := 0
		for _, err := range s.All(t.Context()) {
			require.NoError(t, err)
			count++
			break
		}
		require.Equal(t, 1, count)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		failed := false
		for _, err := range s.All(ctx) {
			failed = failed || err != nil
		}
		require.True(t, failed, "a listing that was broken off is not taken for a whole one")
	})
}

func TestAFilePutAgainIsYoung(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDirectory(t, dir, most)
	digest := put(t, s, "one")
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filePath(dir, digest), old, old))
	put(t, s, "one")
	for b, err := range s.All(t.Context()) {
		require.NoError(t, err)
		require.Greater(t, b.Stored, old.Add(time.Minute))
	}
}

func TestManyStoreAtTheSameTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Each has a store of its own, as processes have.
	var all sync.WaitGroup
	digests := make([]blobs.Digest, 16)
	errs := make([]error, len(digests))
	for i := range digests {
		all.Go(func() {
			s, err := blobs.OpenDirectory(t.Context(), dir, most)
			if err == nil {
				digests[i], _, err = s.Put(t.Context(), strings.NewReader(fmt.Sprintf("content %d", i%4)), most)
			}
			errs[i] = err
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	s := openDirectory(t, dir, most)
	require.Len(t, list(t, s), 4)
	for i, digest := range digests {
		content, err := get(t, s, digest)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("content %d", i%4), content)
	}
}

func FuzzDigest(f *testing.F) {
	f.Add("")
	f.Add(string(digestOf("")))
	f.Add("../../etc/passwd")
	f.Fuzz(func(t *testing.T, text string) {
		digest, err := blobs.ParseDigest(text)
		if err != nil {
			return
		}
		decoded, err := hex.DecodeString(string(digest))
		require.NoError(t, err)
		require.Len(t, decoded, sha256.Size)
		require.True(t, bytes.Equal([]byte(hex.EncodeToString(decoded)), []byte(digest)), "a content has one spelling")
	})
}
