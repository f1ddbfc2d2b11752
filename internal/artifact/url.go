package artifact

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	defaultMaxDownload   = 4 << 30  // bytes
	defaultMaxUnpacked   = 16 << 30 // bytes
	defaultStallTimeout  = time.Minute
	maxChecksumFile      = 1 << 20 // bytes
	progressEvery        = 1 << 20 // bytes between two reports
	urlSumRemedy         = "compare the archive with its publisher's hash; correct the parameter sha256 if that is wrong"
	supportedArchiveText = "supported are .tar.gz, .tar.xz and .zip"
)

// URL provides archives that are downloaded over HTTP or HTTPS: .tar.gz, .tar.xz or .zip, recognised by their content.
//
// Parameters:
//   - "url" is required; {tag} and {target} in its path or query are replaced.
//   - "sha256" is the archive's hash in hexadecimal, or the URL of a file with it in the format of sha256sum; {url}, {tag} and
//     {target} are replaced, so that "{url}.sha256" is the usual value. Without it nothing but TLS protects the content.
//   - "strip_components" is how many leading directories of the archive's names are dropped; 0 unless given.
//
// The identity is the archive's hash ("sha256:…"). Unpacked files keep only the executable bit of their modes; archives
// with devices, or with names or links that lead out of their directory, are [Corrupt].
type URL struct {
	Client *http.Client // nil: http.DefaultClient
	// MaxDownload and MaxUnpacked limit the archive and its content, in bytes; 0 means 4 GiB and 16 GiB.
	MaxDownload, MaxUnpacked int64
	// MaxEntries limits the content's files, links and directories; 0 means 200,000.
	MaxEntries int
	// StallTimeout limits the time without data from the server, before or after its response begins; 0 means one minute.
	StallTimeout time.Duration
}

// Name returns "url".
func (*URL) Name() string { return "url" }

var sha256Pattern = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// Resolve expands the parameters; the target is left out because it matters only as part of the URL.
func (*URL) Resolve(req Request) (Request, error) {
	if err := req.onlyParameters("url", "sha256", "strip_components"); err != nil {
		return Request{}, err
	}
	expanded, err := expandURL(req, "url", req.Parameters["url"])
	if err != nil {
		return Request{}, err
	}
	resolved := Request{Provider: req.Provider, Tag: req.Tag, Parameters: map[string]string{"url": expanded}}
	switch sum := req.Parameters["sha256"]; {
	case sum == "":
	case sha256Pattern.MatchString(sum):
		resolved.Parameters["sha256"] = strings.ToLower(sum)
	default:
		sumURL, err := expandURL(req, "sha256", strings.ReplaceAll(sum, "{url}", req.Parameters["url"]))
		if err != nil {
			return Request{}, err
		}
		resolved.Parameters["sha256"] = sumURL
	}
	if text := req.Parameters["strip_components"]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return Request{}, req.invalid(fmt.Sprintf("parameter strip_components is %q", text), "use a number from 0 on")
		}
		if n > 0 {
			resolved.Parameters["strip_components"] = strconv.Itoa(n)
		}
	}
	return resolved, nil
}

// expandURL replaces the placeholders of a URL template and checks the result.
func expandURL(req Request, parameter, template string) (string, error) {
	if template == "" {
		return "", req.invalid("no URL given", `set the parameter "url", for example to https://example.org/builds/{tag}/{target}.tar.gz`)
	}
	if err := req.checkTemplate(template); err != nil {
		return "", err
	}
	scheme, rest, _ := strings.Cut(template, "://")
	host, _, _ := strings.Cut(rest, "/")
	if scheme != "http" && scheme != "https" || host == "" {
		return "", req.invalid("parameter "+parameter+" is not an http or https URL", "write the whole URL")
	}
	if strings.Contains(host, "{") {
		// A tag must not determine the host.
		return "", req.invalid("parameter "+parameter+" has a placeholder in its host name", "use placeholders after the host only")
	}
	before, query, hasQuery := strings.Cut(template, "?")
	expanded := req.expand(before, func(s string) string {
		segments := strings.Split(s, "/")
		for i := range segments {
			segments[i] = url.PathEscape(segments[i])
		}
		return strings.Join(segments, "/")
	})
	if hasQuery {
		expanded += "?" + req.expand(query, url.QueryEscape)
	}
	if _, err := url.Parse(expanded); err != nil {
		return "", req.invalid("parameter "+parameter+" is not a URL", "correct it")
	}
	return expanded, nil
}

// Fetch downloads the archive, verifies its hash and unpacks it.
func (u *URL) Fetch(ctx context.Context, req Request, dir string, progress ProgressFunc) (string, error) {
	scratch, err := os.MkdirTemp(dir, ".fetch-")
	if err != nil {
		return "", err
	}
	defer func() { _ = removeTree(scratch) }() // below the entry's own temporary directory, which goes too
	archive := filepath.Join(scratch, "archive")
	sum, err := u.download(ctx, req, archive, progress)
	if err != nil {
		return "", err
	}
	want, err := u.expectedSum(ctx, req)
	if err != nil {
		return "", err
	}
	if want != "" && want != sum {
		return "", &Error{Kind: Corrupt, Artifact: req.String(), Remedy: urlSumRemedy,
			Reason: fmt.Sprintf("the archive's SHA-256 is %s, not %s", sum, want)}
	}
	content := filepath.Join(scratch, "content")
	if err := os.Mkdir(content, 0o755); err != nil {
		return "", err
	}
	strip, _ := strconv.Atoi(req.Parameters["strip_components"]) // checked by Resolve; absent: 0
	up := &unpacker{
		dir: content, strip: strip, left: orDefault(u.MaxUnpacked, defaultMaxUnpacked), room: orDefault(u.MaxEntries, defaultMaxEntries),
		progress: func(done int64) { progress(Progress{Step: "unpacking " + req.String(), Done: done}) },
	}
	if err := up.unpack(ctx, archive); err != nil {
		return "", explainUnpack(req, err)
	}
	if err := promote(content, dir); err != nil {
		return "", err
	}
	return "sha256:" + sum, nil
}

func explainUnpack(req Request, err error) error {
	if errors.Is(err, errTooLarge) {
		return &Error{Kind: Invalid, Artifact: req.String(), Reason: "the archive's content is larger than allowed", Err: err,
			Remedy: "raise the provider's limit for unpacked artifacts"}
	}
	if errors.Is(err, errNothingUnpacked) {
		return &Error{Kind: Invalid, Artifact: req.String(), Reason: "the archive has no files below its stripped directories", Err: err,
			Remedy: "lower the parameter strip_components"}
	}
	if bad, ok := errors.AsType[*archiveError](err); ok {
		return &Error{Kind: Corrupt, Artifact: req.String(), Reason: "not a usable archive (" + supportedArchiveText + ")", Err: bad,
			Remedy: "check the content of " + redact(req.Parameters["url"])}
	}
	return fmt.Errorf("unpacking %s: %w", req, err)
}

// download stores the archive and returns its hash.
func (u *URL) download(ctx context.Context, req Request, file string, progress ProgressFunc) (sum string, err error) {
	out, err := os.Create(file)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	hash := sha256.New()
	step := "downloading " + redact(req.Parameters["url"])
	var done, reported int64
	err = u.get(ctx, req, req.Parameters["url"], orDefault(u.MaxDownload, defaultMaxDownload), func(chunk []byte, total int64) error {
		hash.Write(chunk)
		done += int64(len(chunk))
		if done-reported >= progressEvery || done == total {
			reported = done
			progress(Progress{Step: step, Done: done, Total: max(total, 0)})
		}
		_, err := out.Write(chunk)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil)), err
}

// expectedSum returns the expected hash of the archive; empty if the request names none.
func (u *URL) expectedSum(ctx context.Context, req Request) (string, error) {
	sum := req.Parameters["sha256"]
	if sum == "" || sha256Pattern.MatchString(sum) {
		return sum, nil
	}
	var text strings.Builder
	err := u.get(ctx, req, sum, maxChecksumFile, func(chunk []byte, _ int64) error {
		text.Write(chunk)
		return nil
	})
	if err != nil {
		return "", err
	}
	address, err := url.Parse(req.Parameters["url"])
	if err != nil {
		return "", err
	}
	found, ok := findSum(text.String(), path.Base(address.Path))
	if !ok {
		return "", &Error{Kind: Corrupt, Artifact: req.String(), Reason: "no SHA-256 of the archive in " + redact(sum),
			Remedy: "it must contain a line in the format of sha256sum"}
	}
	return found, nil
}

// findSum finds the hash of a file in the output of sha256sum. A text with a single hash needs no names.
func findSum(text, file string) (string, bool) {
	var only string
	count := 0
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || !sha256Pattern.MatchString(fields[0]) {
			continue
		}
		sum := strings.ToLower(fields[0])
		if len(fields) == 2 && path.Base(strings.TrimPrefix(fields[1], "*")) == file {
			return sum, true
		}
		only = sum
		count++
	}
	return only, count == 1
}

var errStalled = errors.New("the server sent nothing for too long")

// get passes the body of a successful response to sink, chunk by chunk, with the announced size, or -1.
func (u *URL) get(ctx context.Context, req Request, address string, limit int64, sink func(chunk []byte, total int64) error) error {
	stallTimeout := orDefault(u.StallTimeout, defaultStallTimeout)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(stallTimeout, func() { cancel(fmt.Errorf("%w (%s)", errStalled, stallTimeout)) })
	defer stalled.Stop()

	unavailable := func(reason string, err error) error {
		if cause := context.Cause(ctx); cause != nil {
			if !errors.Is(cause, errStalled) {
				return cause
			}
			err = cause
		}
		return &Error{Kind: Unavailable, Artifact: req.String(), Reason: reason, Err: err,
			Remedy: "check the server and the network of this machine"}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept-Encoding", "identity") // else the archive itself might be taken for a compressed transfer
	client := u.Client
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(r)
	if err != nil {
		return unavailable("the download failed", err)
	}
	defer response.Body.Close()
	if err := checkStatus(req, address, response); err != nil {
		return err
	}
	tooLarge := &Error{Kind: Invalid, Artifact: req.String(), Reason: fmt.Sprintf("%s is larger than the allowed %d bytes", redact(address), limit),
		Remedy: "raise the provider's limit for downloads"}
	if response.ContentLength > limit {
		return tooLarge
	}
	buffer := make([]byte, 64<<10)
	for size := int64(0); ; {
		n, err := response.Body.Read(buffer)
		stalled.Reset(stallTimeout)
		if size += int64(n); size > limit {
			return tooLarge
		}
		if sinkErr := sink(buffer[:n], response.ContentLength); sinkErr != nil {
			return sinkErr
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return unavailable(fmt.Sprintf("the download of %s broke off after %d bytes", redact(address), size), err)
		}
	}
}

func checkStatus(req Request, address string, response *http.Response) error {
	e := &Error{Artifact: req.String(), Err: fmt.Errorf("%s answered %s", redact(address), response.Status)}
	switch code := response.StatusCode; {
	case code == http.StatusOK:
		return nil
	case code == http.StatusNotFound, code == http.StatusGone:
		e.Kind, e.Reason, e.Remedy = NotFound, "not found by the server", "check that the tag exists and that the URL is right"
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		e.Kind, e.Reason, e.Remedy = Unavailable, "the server cannot answer now", "try again later"
	default:
		e.Kind, e.Reason, e.Remedy = NotFound, "the server refuses access", "check the URL and the permission to read it"
	}
	return e
}

// redact hides the user and the password of a URL.
func redact(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return "an unreadable URL"
	}
	if parsed.User != nil {
		parsed.User = url.User("xxxxx") // a user alone may be a token
	}
	return parsed.String()
}

func orDefault[T int | int64 | time.Duration](value, fallback T) T {
	if value == 0 {
		return fallback
	}
	return value
}
