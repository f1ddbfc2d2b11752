package pages

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

// asset is a file that pages refer to.
type asset struct {
	contentType   string
	plain, zipped []byte
}

// assets are served below an address with the hash of all of them: browsers keep them
// forever, and a module finds its neighbours beside it.
type assets struct {
	hash  string
	files map[string]asset
}

var assetTypes = map[string]string{"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}

func loadAssets() (assets, error) {
	a := assets{files: make(map[string]asset)}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return a, fmt.Errorf("listing the assets: %w", err)
	}
	sum := sha256.New()
	for _, e := range entries { // in order of their names
		text, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			return a, fmt.Errorf("reading an asset: %w", err)
		}
		_, ending, _ := strings.Cut(e.Name(), ".")
		kind, known := assetTypes[ending]
		if !known {
			return a, fmt.Errorf("asset %s: no content type is known for it; add it to assetTypes", e.Name())
		}
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		_, _ = z.Write(text) // into memory
		_ = z.Close()
		a.files[e.Name()] = asset{kind, text, zipped.Bytes()}
		fmt.Fprintf(sum, "%s %d\n%s", e.Name(), len(text), text)
	}
	a.hash = hex.EncodeToString(sum.Sum(nil))[:16]
	return a, nil
}

// path returns the address of an asset.
func (a assets) path(name string) (string, error) {
	if _, there := a.files[name]; !there {
		return "", fmt.Errorf("there is no asset %s", name)
	}
	return "/assets/" + a.hash + "/" + name, nil
}

// serve answers with an asset. An address with the hash of another version has nothing:
// what is kept forever must be what the address says.
func (a assets) serve(w http.ResponseWriter, r *http.Request) {
	file, there := a.files[r.PathValue("file")]
	if !there || r.PathValue("hash") != a.hash {
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "There is no such asset; reload the page that refers to it.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", file.contentType)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Vary", "Accept-Encoding")
	body := file.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		body = file.zipped
	}
	_, _ = w.Write(body) // fails only if the client is gone
}
