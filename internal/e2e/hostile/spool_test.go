package hostile_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
)

// spooled lists the blocks that a collector has on disk and not delivered.
func spooled(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "spool", "*.json.gz"))
	require.NoError(t, err)
	return files
}

// results counts the results that the record has of a request.
func (s service) results(t *testing.T, id bench.RequestID) (n int) {
	t.Helper()
	d, err := s.API.Request(t.Context(), string(id))
	require.NoError(t, err)
	var runs []bench.RunID
	for _, r := range d.Runs {
		runs = append(runs, r.ID)
	}
	require.NotEmpty(t, runs)
	err = s.database(t).QueryRow(t.Context(), `select count(*) from test_result where run_id = any($1)`, runs).Scan(&n)
	require.NoError(t, err)
	return n
}

// once is a command that leaves a line in a file. From its second execution on it lasts
// until the other file is gone.
func once(count, held string) []string {
	return []string{"sh", "-c", fmt.Sprintf(`echo once >>%s; [ "$(wc -l <%s)" -le 1 ] || while [ -e %s ]; do sleep 0.05; done`, count, count, held)}
}

// A collector whose spool is on a full disk delivers its blocks nevertheless.
func TestAFullDiskDropsNoBlock(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	dir := s.enrolMachine(t, "on-a-full-disk", 15, s.url)
	spool := filepath.Join(dir, "spool")
	require.NoError(t, os.MkdirAll(spool, 0o700))
	if err := syscall.Mount("tmpfs", spool, "tmpfs", 0, "size=64k,nr_inodes=20"); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(spool, 0)) })
	full := os.WriteFile(filepath.Join(spool, "filler"), make([]byte, 1<<20), 0o600)
	require.ErrorIs(t, full, syscall.ENOSPC)
	for i := 0; ; i++ {
		err := os.WriteFile(filepath.Join(spool, "filler-"+strconv.Itoa(i)), nil, 0o600)
		if errors.Is(err, syscall.ENOSPC) {
			break
		}
		require.NoError(t, err)
	}
	runMachine(t, dir)
	s.awaitMachine(t, "on-a-full-disk")

	count := writable(t, "count")
	id := s.submit(t, apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"sh", "-c", "echo once >>" + count}}, PlacementWish: apiclient.PlacementWish{SizeClass: 15}})
	d := s.await(t, id)
	require.Equal(t, bench.Success, d.Outcome, d.Message)
	require.Len(t, d.Runs, 1)
	require.Equal(t, bench.RunSuccess, d.Runs[0].Outcome, d.Runs[0].Message)
	require.Equal(t, 1, executed(t, count), "it was measured again")
	require.Equal(t, 1, s.results(t, id))
	require.Empty(t, spooled(t, dir), "the disk was not full")
}

// A block that the API itself has refused stays on the collector, and is delivered when a
// person asks for that after the reason is gone.
func TestARefusedBlockIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	p := proxied(t, s, slices.Repeat([]int{http.StatusBadGateway}, 10_000)...)
	dir := s.enrolMachine(t, "refused", 17, p.URL)
	kill := runMachine(t, dir)
	s.awaitMachine(t, "refused")
	count := writable(t, "count")
	file, release := held(t)
	id := s.submit(t, apiclient.NewRequest{Command: &apiclient.Command{Argv: once(count, file)}, PlacementWish: apiclient.PlacementWish{SizeClass: 17}})
	run := s.runOf(t, id)
	require.Eventually(t, func() bool { return p.answered.Load() > 0 }, patience, 20*time.Millisecond, "no block was sent")
	kill()
	require.Len(t, spooled(t, dir), 1)

	// For a while the record says that the run is another's, as a restored backup might.
	db := s.database(t)
	belongsTo := func(name string) {
		t.Helper()
		tag, err := db.Exec(t.Context(), `update job_run set collector = $2 where id = $1`, run.ID, name)
		require.NoError(t, err)
		require.EqualValues(t, 1, tag.RowsAffected())
	}
	others, err := s.API.Collectors(t.Context())
	require.NoError(t, err)
	at := slices.IndexFunc(others, func(c apiclient.Collector) bool { return c.Name != "refused" })
	belongsTo(others[at].Name)
	p.open.Store(true)
	runMachine(t, dir)
	require.Eventually(t, func() bool { return len(setAside(t, dir)) > 0 }, patience, 20*time.Millisecond, "the API's refusal sets nothing aside")
	require.Empty(t, spooled(t, dir))
	require.Zero(t, s.results(t, id))

	belongsTo("refused")
	out, err := s.run(t, "collector", "redeliver", "--state-dir", dir, "--all", "-o", "json")
	require.NoError(t, err, out)
	var delivered []struct {
		Run      bench.RunID
		Outcome  string
		Accepted int
	}
	require.NoError(t, json.Unmarshal([]byte(out), &delivered), out)
	require.Len(t, delivered, 1, out)
	require.Equal(t, run.ID, delivered[0].Run)
	require.Equal(t, "accepted", delivered[0].Outcome, out)
	require.Equal(t, 1, delivered[0].Accepted, out)
	require.Equal(t, 1, s.results(t, id))
	require.Empty(t, setAside(t, dir), "what is delivered is removed")
	release()
}

// A collector that is killed in the moment in which its block counts as safe has it on
// disk, whole and under its name, and delivers it when it starts again. That the directory
// is synced as well shows only after a power failure, which cannot be tried here: the
// kernel keeps what a killed process has written. TestABlockIsDurableWithItsName of
// activities/collection looks at the calls.
func TestAKilledCollectorHasItsBlock(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	dir := s.enrolMachine(t, "killed", 19, s.url)
	points := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(points, "hold-"+failpoint.Spooled), nil, 0o600))
	kill := runMachine(t, dir, failpoint.Env+"="+points)
	s.awaitMachine(t, "killed")
	count := writable(t, "count")
	file, release := held(t)
	id := s.submit(t, apiclient.NewRequest{Command: &apiclient.Command{Argv: once(count, file)}, PlacementWish: apiclient.PlacementWish{SizeClass: 19}})
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(points, "reached-"+failpoint.Spooled))
		return err == nil
	}, patience, 10*time.Millisecond, "no block was written")
	kill()
	blocks := spooled(t, dir)
	require.Len(t, blocks, 1)
	require.Zero(t, s.results(t, id), "it was delivered before it was safe")
	packed, err := os.Open(blocks[0])
	require.NoError(t, err)
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	require.NoError(t, err)
	var block apiclient.Block
	require.NoError(t, json.NewDecoder(z).Decode(&block))
	require.Len(t, block.Results, 1)

	runMachine(t, dir)
	require.Eventually(t, func() bool { return s.results(t, id) == 1 }, patience, 50*time.Millisecond, "the block is not delivered")
	require.Eventually(t, func() bool { return len(spooled(t, dir)) == 0 }, patience, 10*time.Millisecond)
	require.Empty(t, setAside(t, dir))
	release()
}
