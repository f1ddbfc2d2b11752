package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// shownLines bounds the invalid lines that are named.
const shownLines = 20

// create submits the request; the jobs of a file go with it in one call.
func (f *submitFlags) create(cmd *cobra.Command, api *apiclient.Client, wanted apiclient.NewRequest) (apiclient.Request, error) {
	if f.file == "" {
		return api.CreateRequest(cmd.Context(), wanted)
	}
	return api.CreateBatch(cmd.Context(), wanted, slices.Values(f.jobs))
}

// readJobs reads and checks the whole file of jobs before anything is sent.
func (f *submitFlags) readJobs(stdin io.Reader) ([]apiclient.NewJob, error) {
	name, from := f.file, stdin
	if name == "-" {
		name = "standard input"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, usage(fmt.Errorf("the file of jobs cannot be read: %w; name a file with one JSON object per line, or - for standard input", err))
		}
		defer file.Close()
		from = file
	}
	jobs, err := f.parseJobs(from, name)
	if err != nil {
		return nil, usage(err)
	}
	return jobs, nil
}

func (f *submitFlags) parseJobs(from io.Reader, name string) ([]apiclient.NewJob, error) {
	var jobs []apiclient.NewJob
	var errs []error
	wrong, size := 0, 0
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, apiclient.MaxJobBytes)
	number := 0
	for lines.Scan() {
		number++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		size += len(text) + 1
		j, err := apiclient.ReadJob(text)
		switch {
		case err != nil:
			if wrong++; wrong <= shownLines {
				errs = append(errs, fmt.Errorf("%s:%d: %w", name, number, err))
			}
			continue
		case len(jobs) == apiclient.MaxBatch:
			return nil, fmt.Errorf("%s holds more than %d jobs; submit it in several files", name, apiclient.MaxBatch)
		}
		jobs = append(jobs, f.withDefaults(j))
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s:%d: the line is longer than %d bytes; put long input into a file that the command reads", name, number+1, apiclient.MaxJobBytes)
	case err != nil:
		return nil, fmt.Errorf("the file of jobs cannot be read: %w; name a file with one JSON object per line, or - for standard input", err)
	case wrong > shownLines:
		errs = append(errs, fmt.Errorf("and %d more lines", wrong-shownLines))
	}
	switch {
	case wrong > 0:
		return nil, fmt.Errorf("nothing was submitted; correct these lines first:\n%w", errors.Join(errs...))
	case len(jobs) == 0:
		return nil, fmt.Errorf(`%s holds no job; write one JSON object per line, such as {"argv": ["./x", "--quick"]}`, name)
	case size > apiclient.MaxBatchBytes:
		return nil, fmt.Errorf("%s has more than %d MB; submit it in several files", name, apiclient.MaxBatchBytes/1_000_000)
	}
	return jobs, nil
}

// withDefaults fills in a job's missing fields from the flags.
func (f *submitFlags) withDefaults(j apiclient.NewJob) apiclient.NewJob {
	if j.TimeoutSeconds == 0 {
		j.TimeoutSeconds = f.defaults.TimeoutSeconds
	}
	if j.Iterations == 0 {
		j.Iterations = f.defaults.Iterations
	}
	if len(f.defaults.Env) > 0 {
		env := maps.Clone(f.defaults.Env)
		maps.Copy(env, j.Env)
		j.Env = env
	}
	return j
}
