package suite

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

//go:embed template
var template embed.FS

// Init creates a working suite: two versions of a small program, an input and a
// suite.yaml to start from. The folder may exist; none of the files may.
func Init(dir, name string) error {
	if err := bench.CheckName("suite", name); err != nil {
		return err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("making a suite in %s: %w", dir, err)
	}
	builds, err := json.Marshal(filepath.Join(abs, "builds", "{tag}")) // a JSON string is a YAML string
	if err != nil {
		return err
	}
	files, err := fs.Sub(template, "template")
	if err != nil {
		return err
	}
	placeholders := strings.NewReplacer("name: NAME", "name: "+quoted(name), "path: BUILDS", "path: "+string(builds))
	err = fs.WalkDir(files, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(abs, filepath.FromSlash(file))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(file, "builds/") {
			mode = 0o755
		}
		if file == FileName {
			text = []byte(placeholders.Replace(string(text)))
		}
		return writeNew(target, text, mode)
	})
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making a suite in %s: %w; choose another folder, or edit what is there", dir, err)
	}
	if err != nil {
		return fmt.Errorf("making a suite in %s: %w", dir, err)
	}
	return nil
}

// quoted quotes names that YAML would read as another type, such as 1.0.
func quoted(name string) string { return `"` + name + `"` }

func writeNew(file string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
