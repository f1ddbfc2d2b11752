package hostile_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// On a terminal, what a benchmark prints cannot write to the clipboard, set the title or
// clear the screen.
func TestLogsPrintNoTerminalEscapes(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	const planted = `printf 'before\033]52;c;cGxhbnRlZA==\007\033]0;title\007\033[2Jafter\n'; exit 1`
	id := s.submit(t, apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"sh", "-c", planted}}, PlacementWish: apiclient.PlacementWish{SizeClass: 1}})
	d := s.await(t, id)
	require.Equal(t, bench.Failure, d.Outcome)
	for _, args := range [][]string{{"logs", string(d.Runs[0].ID)}, {"status", string(id)}} {
		shown := s.onTerminal(t, args...)
		require.Contains(t, shown, "after", "%v", args)
		require.NotContains(t, shown, "\x1b]52", "%v", args)
		require.NotContains(t, shown, "\x1b]0", "%v", args)
		require.NotContains(t, shown, "\x1b[2J", "%v", args)
		require.NotContains(t, shown, "\x07", "%v", args)
	}
}

// onTerminal runs a command of the binary on a terminal of its own, and returns what that
// was sent.
func (s service) onTerminal(t *testing.T, args ...string) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer master.Close()
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	p := programs()
	require.NoError(t, p.Find())
	command := exec.CommandContext(t.Context(), p.Benchloom, args...)
	command.Env = append(os.Environ(), "BENCHLOOM_STATE_DIR="+s.State(), "BENCHLOOM_URL=", "BENCHLOOM_TOKEN=", "TERM=xterm")
	command.Stdin, command.Stdout, command.Stderr = slave, slave, slave
	require.NoError(t, command.Start())
	require.NoError(t, slave.Close())
	shown := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(master) // ends with an error when the terminal is closed
		shown <- string(text)
	}()
	require.NoError(t, command.Wait())
	return <-shown
}
