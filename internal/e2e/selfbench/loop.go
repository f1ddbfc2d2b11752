package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// loopCommand makes this program burn CPU time in a fixed number of rounds, the same
// work wrapped and bare.
const loopCommand = "loop"

// loop runs a number of rounds of Marsaglia's xorshift64, which uses registers only.
func loop(rounds string) error {
	n, err := strconv.ParseUint(rounds, 10, 62)
	if err != nil {
		return fmt.Errorf("reading the rounds of the loop: %w", err)
	}
	x := uint64(88172645463325252)
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	if x == 0 { // never, but the compiler does not know that
		return errors.New("the loop ended with 0")
	}
	return nil
}

// calibrate finds how many rounds take a second.
func calibrate(ctx context.Context) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("finding this program: %w", err)
	}
	const tried = 200_000_000
	best := time.Duration(0)
	for range 3 {
		command := exec.CommandContext(ctx, self, loopCommand, strconv.Itoa(tried))
		if err := command.Run(); err != nil {
			return 0, fmt.Errorf("calibrating the loop: %w", err)
		}
		if took := command.ProcessState.UserTime() + command.ProcessState.SystemTime(); best == 0 || took < best {
			best = took
		}
	}
	if best < 10*time.Millisecond {
		return 0, fmt.Errorf("calibrating the loop: %d rounds took %s of CPU time, which is implausibly little", tried, best)
	}
	return int(float64(tried) * float64(time.Second) / float64(best)), nil
}
