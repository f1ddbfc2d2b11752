package probe

import (
	"crypto/sha256"
	"encoding/binary"
	"runtime/debug"
)

// Work is the program that is measured: about a quarter of a second of arithmetic
// and of reads and writes across more memory than the fast caches hold. It does the
// same on every machine, and returns a number that depends on all of it.
func Work() uint64 {
	// The collector of garbage would start threads at moments of its own.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const (
		words  = 1 << 21 // 16 MiB
		visits = 2 << 20
		blocks = 1 << 17
	)
	memory := make([]uint64, words)
	x := uint64(88172645463325252)
	for range visits {
		// Marsaglia's xorshift, 2003.
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		at := x % words
		memory[at] += x
		x += memory[(at+x>>40)%words]
		x |= 1 // never 0, where the generator would stay
	}
	var block [sha256.Size]byte
	for n := range uint64(blocks) {
		binary.LittleEndian.PutUint64(block[:], x^n)
		block = sha256.Sum256(block[:])
	}
	return x ^ binary.LittleEndian.Uint64(block[:])
}
