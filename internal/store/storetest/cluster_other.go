//go:build !unix

package storetest

import (
	"context"
	"errors"
)

func start(context.Context) (func(database string) string, error) {
	return nil, errors.New("private Postgres clusters are not supported on this system")
}

func dump(context.Context, string) (string, error) {
	return "", errors.New("private Postgres clusters are not supported on this system")
}
