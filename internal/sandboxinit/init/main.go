// Init is the init process of a sandbox; see package sandboxinit.
package main

import (
	"fmt"
	"os"

	"github.com/benchloom/benchloom/internal/measure"
)

func main() {
	measure.InitMain()
	fmt.Fprintln(os.Stderr, "this program is started by a collector, as the init process of a sandbox")
	os.Exit(1)
}
