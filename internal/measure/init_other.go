//go:build !linux

package measure

// InitMain must be called at the very beginning of main in programs that isolate commands. On this system nothing is isolated,
// and it does nothing.
func InitMain() {}
