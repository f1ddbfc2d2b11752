package api

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// spool holds the jobs of a batch, compressed, while its request is created: one JSON
// document per line. They are read twice, for checking and for writing, and are never
// all in memory.
type spool struct {
	packed bytes.Buffer
	count  int
}

// lines yields the jobs in the order in which they were sent, numbered from 1.
func (s *spool) lines() iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		zipped, err := gzip.NewReader(bytes.NewReader(s.packed.Bytes()))
		if err != nil {
			panic(fmt.Sprintf("api: reading a spool: %v", err)) // it was compressed here
		}
		scanner := bufio.NewScanner(zipped)
		scanner.Buffer(make([]byte, 0, 64<<10), apiclient.MaxBatchBytes+1)
		for place := 1; scanner.Scan(); place++ {
			if !yield(place, scanner.Bytes()) {
				return
			}
		}
	}
}

type spoolKey struct{}

// spooled returns the jobs of a request's batch; nil without one.
func spooled(ctx context.Context) *spool {
	s, _ := ctx.Value(spoolKey{}).(*spool)
	return s
}

// spoolJobs takes the field jobs out of a body and spools it, so that the framework only
// reads and checks a small body. A small body without the field is left as it is.
func (s *base) spoolJobs(ctx huma.Context, next func(huma.Context)) {
	// Deadlines follow the real clock; a writer without deadlines has no connection.
	_ = ctx.SetReadDeadline(time.Now().Add(bodyBound))
	body := io.LimitReader(ctx.BodyReader(), apiclient.MaxBatchBytes+1)
	switch encoding := ctx.Header("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		zipped, err := gzip.NewReader(body)
		if err != nil {
			s.refuse(ctx, problemf(http.StatusBadRequest, "malformed", "the body is not valid gzip: %s; send it again", err))
			return
		}
		body = io.LimitReader(zipped, apiclient.MaxBatchBytes+1)
	default:
		s.refuse(ctx, problemf(http.StatusUnsupportedMediaType, "unsupported-media-type", "the body has the encoding %.40q; use gzip, or none", encoding))
		return
	}
	counted := &counter{from: body}
	start, err := io.ReadAll(io.LimitReader(counted, s.MaxBody+1))
	if err != nil {
		s.refuse(ctx, problemf(http.StatusBadRequest, "malformed", "the body cannot be read: %s; send it again", err))
		return
	}
	if !bytes.Contains(start, []byte(`"jobs"`)) {
		next(&unzipped{exchange: ctx, body: bytes.NewReader(start)}) // a body that is too large is refused there
		return
	}
	head, jobs, err := s.takeJobs(io.MultiReader(bytes.NewReader(start), counted))
	if counted.read > apiclient.MaxBatchBytes {
		err = problemf(http.StatusRequestEntityTooLarge, "too-large", "the request is larger than %d MB; send fewer jobs at once", apiclient.MaxBatchBytes/1_000_000)
	}
	if err != nil {
		var ready *huma.ErrorModel
		if !errors.As(err, &ready) {
			ready = problemf(http.StatusBadRequest, "malformed", "the body is not valid JSON: %s; correct it, /openapi.json describes it", err)
		}
		s.refuse(ctx, ready)
		return
	}
	next(&unzipped{exchange: huma.WithValue(ctx, spoolKey{}, jobs), body: bytes.NewReader(head)})
}

// takeJobs splits a body into the contents of the field jobs and the rest.
func (s *base) takeJobs(body io.Reader) (head []byte, jobs *spool, err error) {
	decoder := json.NewDecoder(body)
	if t, err := decoder.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, errors.Join(err, errors.New("it is no object"))
	}
	rest, size := make(map[string]json.RawMessage), 0
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, nil, err
		}
		key, _ := name.(string)
		if rest[key] != nil || key == "jobs" && jobs != nil {
			return nil, nil, invalid("the field %.40s is there twice: one of its values would be dropped; leave one out", key)
		}
		if key == "jobs" {
			if jobs, err = readSpool(decoder); err != nil {
				return nil, nil, err
			}
			continue
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, nil, err
		}
		if size += len(key) + len(value); int64(size) > s.MaxBody {
			return nil, nil, problemf(http.StatusRequestEntityTooLarge, "too-large", "the request without its jobs is larger than %d bytes; send less", s.MaxBody)
		}
		rest[key] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, nil, err
	}
	if decoder.More() {
		return nil, nil, errors.New("there is more behind the object")
	}
	head, err = json.Marshal(rest)
	return head, jobs, err
}

// readSpool reads the list of jobs that comes next.
func readSpool(decoder *json.Decoder) (*spool, error) {
	if t, err := decoder.Token(); err != nil || t != json.Delim('[') {
		return nil, errors.Join(err, invalid("jobs is no list; send a list of jobs, each with its argv"))
	}
	s := &spool{}
	zipped, err := gzip.NewWriterLevel(&s.packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	var value json.RawMessage
	var line bytes.Buffer
	for decoder.More() {
		if s.count++; s.count > apiclient.MaxBatch {
			return nil, invalid("there are more than %d jobs; send them as several requests", apiclient.MaxBatch)
		}
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		line.Reset()
		if err := json.Compact(&line, value); err != nil {
			return nil, err
		}
		line.WriteByte('\n')
		if _, err := zipped.Write(line.Bytes()); err != nil {
			return nil, err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	if s.count == 0 {
		return nil, invalid("jobs is empty; send at least one job, or leave it out")
	}
	return s, zipped.Close()
}

// counter counts the bytes read.
type counter struct {
	from io.Reader
	read int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.read += n
	return n, err
}
