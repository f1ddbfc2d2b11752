//go:build !linux

package main

import "github.com/rogpeppe/go-internal/testscript"

func terminal(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("scripts with terminals run on Linux only")
}
