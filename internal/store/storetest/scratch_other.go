//go:build !linux

package storetest

func scratch() string { return "" }
