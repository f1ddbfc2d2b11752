package sizeclass_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/sizeclass"
)

var now = time.Date(2026, time.January, 31, 12, 0, 0, 0, time.UTC)

func analyzer(t *testing.T) *sizeclass.Analyzer {
	t.Helper()
	a, err := sizeclass.New(sizeclass.Defaults())
	require.NoError(t, err)
	return a
}

func question() sizeclass.Question {
	return sizeclass.Question{Classes: classes, Original: 30 * time.Minute, Now: now, Attempt: "a1"}
}
