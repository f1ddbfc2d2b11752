package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/goccy/go-yaml"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/waittime"
)

// ReadQueueFile parses and checks queues and account limits in YAML or JSON. Unknown
// keys are errors. path names the file in errors.
func ReadQueueFile(path string, text []byte) (fairshare.File, error) {
	var f fairshare.File
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil && !errors.Is(err, io.EOF) {
		return f, fmt.Errorf("%w: %s", bench.ErrInvalid, placed(path, err))
	}
	if f.Empty() {
		return f, fmt.Errorf("%w: %s names no queue or account; add some under 'queues:' or 'accounts:'", bench.ErrInvalid, path)
	}
	if _, err := f.Check(); err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Queues writes the queues and account limits.
func Queues(w io.Writer, list apiclient.FairQueues, v View) error {
	t := NewTable(Column{Heading: "queue"}, Column{Heading: "class"}, Column{Heading: "level", Right: true}, Column{Heading: "weight", Right: true},
		Column{Heading: "start within", Right: true},
		Column{Heading: "waiting", Right: true}, Column{Heading: "handed out", Right: true}, Column{Heading: "running", Right: true},
		Column{Heading: "warning", Flex: true})
	for _, q := range list.Queues {
		weight := strconv.FormatFloat(q.Weight, 'g', -1, 64)
		if q.Class == fairshare.Strict {
			weight = ""
		}
		t.Row(q.Name, string(q.Class), strconv.Itoa(q.Level), weight, ownObjective(q), strconv.Itoa(q.Queued), strconv.Itoa(q.HandedOut), strconv.Itoa(q.Running), q.Warning)
	}
	if err := t.Write(w, v.Width); err != nil {
		return err
	}
	if len(list.Accounts) == 0 {
		return nil
	}
	t = NewTable(Column{Heading: "account"}, Column{Heading: "branch"}, Column{Heading: "first level", Right: true}, Column{Heading: "max running", Right: true},
		Column{Heading: "handed out", Right: true}, Column{Heading: "max waiting", Right: true}, Column{Heading: "waiting", Right: true})
	for _, a := range list.Accounts {
		t.Row(a.Account, a.Branch, strconv.Itoa(a.FirstLevel), most(a.MaxRunning), strconv.Itoa(a.Running), most(a.MaxQueued), strconv.Itoa(a.Queued))
	}
	if err := write(w, "\n"); err != nil {
		return err
	}
	return t.Write(w, v.Width)
}

// ownObjective formats the time within which jobs of a queue should start; empty for the
// default, which most have.
func ownObjective(q apiclient.FairQueue) string {
	if q.WaitObjective == waittime.DefaultObjective.Seconds() {
		return ""
	}
	return Duration(seconds(q.WaitObjective))
}

// most formats a limit; nil is none.
func most(n *int) string {
	if n == nil {
		return "any"
	}
	return strconv.Itoa(*n)
}
