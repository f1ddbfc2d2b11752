package collection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// SpoolFile is a block's file in the spool of a collector, which may be running.
type SpoolFile struct {
	// File is its name in the spool.
	File string      `json:"file"`
	Run  bench.RunID `json:"run,omitempty"`
	// Block is its number within the run.
	Block int       `json:"block,omitempty"`
	Bytes int64     `json:"bytes"`
	At    time.Time `json:"at"`
	// SetAside is set if the collector does not deliver the block itself; Reason says why.
	SetAside bool   `json:"set_aside"`
	Reason   string `json:"reason,omitempty"`
}

// Redelivery is the outcome of delivering a block that was set aside.
type Redelivery struct {
	File  string      `json:"file"`
	Run   bench.RunID `json:"run,omitempty"`
	Block int         `json:"block,omitempty"`
	// Outcome is accepted, superseded, refused or undelivered. In the first two cases the
	// block's file is removed.
	Outcome string `json:"outcome"`
	// Accepted and Superseded count its results.
	Accepted   int    `json:"accepted"`
	Superseded int    `json:"superseded"`
	Reason     string `json:"reason,omitempty"`
}

// Outcomes of a redelivery.
const (
	Accepted    = "accepted"
	Superseded  = "superseded"
	Refused     = "refused"
	Undelivered = "undelivered"
)

// Blocks is the part of the HTTP API that takes blocks; *apiclient.Client implements it.
// It is called under no lock, one block at a time. It must not be nil.
type Blocks interface {
	UploadBlock(ctx context.Context, run bench.RunID, number int, block apiclient.Block) (apiclient.BlockReceipt, error)
}

// SpoolFiles returns the blocks in the spool of a collector, in order of their names.
func SpoolFiles(dir string) ([]SpoolFile, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no spool %s: name the state directory of a collector with --state-dir", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the spool: %w", err)
	}
	out := []SpoolFile{}
	for _, e := range entries {
		name, aside := strings.CutSuffix(e.Name(), refused)
		if !strings.HasSuffix(name, spoolSuffix) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was just delivered
		}
		if err != nil {
			return nil, fmt.Errorf("reading the spool: %w", err)
		}
		f := SpoolFile{File: e.Name(), Bytes: info.Size(), At: info.ModTime().UTC(), SetAside: aside}
		if b, err := parseSpooled(strings.TrimSuffix(name, spoolSuffix)); err == nil {
			f.Run, f.Block = b.Run, b.Number
		}
		if text, err := os.ReadFile(filepath.Join(dir, e.Name()+why)); err == nil {
			f.Reason = strings.TrimSpace(string(text))
		}
		out = append(out, f)
	}
	return out, nil
}

// Redeliver delivers one block that was set aside. Its error is the disk's; an answer of
// the API or of anything else is part of the result.
func Redeliver(ctx context.Context, api Blocks, dir string, f SpoolFile) (Redelivery, error) {
	out := Redelivery{File: f.File, Run: f.Run, Block: f.Block, Outcome: Refused}
	path := filepath.Join(dir, f.File)
	if f.Run == "" {
		out.Reason = "it is not named like a block, RUN.NUMBER" + spoolSuffix + refused
		return out, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return out, fmt.Errorf("reading a block that was set aside: %w", err)
	}
	defer file.Close()
	block, err := unpack(file)
	if err != nil {
		out.Reason = "it is damaged: " + err.Error()
		return out, nil
	}
	receipt, err := api.UploadBlock(ctx, f.Run, f.Block, block)
	if err != nil {
		out.Reason = err.Error()
		if !apiclient.IsRefusal(err) {
			out.Outcome = Undelivered
			return out, nil
		}
		_ = os.WriteFile(path+why, []byte(out.Reason+"\n"), 0o600) // the newest reason; without it, the block is as safe
		return out, nil
	}
	out.Accepted, out.Superseded = receipt.Accepted, receipt.Superseded
	out.Outcome = Accepted
	if receipt.Accepted == 0 && receipt.Superseded > 0 {
		out.Outcome = Superseded
	}
	if err := errors.Join(os.Remove(path), ignore(os.Remove(path+why), fs.ErrNotExist)); err != nil {
		return out, fmt.Errorf("removing a delivered block: %w", err)
	}
	return out, nil
}

// Chosen returns the files that were set aside and have these names or paths; without
// names, all of them.
func Chosen(files []SpoolFile, names []string) ([]SpoolFile, error) {
	files = slices.DeleteFunc(slices.Clone(files), func(f SpoolFile) bool { return !f.SetAside })
	if len(names) == 0 {
		return files, nil
	}
	var out []SpoolFile
	for _, name := range names {
		at := slices.IndexFunc(files, func(f SpoolFile) bool { return f.File == filepath.Base(name) })
		if at < 0 {
			return nil, fmt.Errorf("no block that was set aside is named %s: 'benchloom collector redeliver --list' shows them", name)
		}
		if !slices.Contains(out, files[at]) {
			out = append(out, files[at])
		}
	}
	slices.SortFunc(out, func(a, b SpoolFile) int { return cmp.Compare(a.File, b.File) })
	return out, nil
}
