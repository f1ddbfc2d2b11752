package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/goccy/go-yaml"

	"github.com/benchloom/benchloom/internal/bench"
)

// ProjectFile is the content of a project file.
type ProjectFile struct {
	// Name is the project's name.
	Name string `yaml:"name"`
	// Suite is the directory of the suite, relative to the file; empty for a project
	// of commands.
	Suite string `yaml:"suite"`

	bench.ProjectConfig `yaml:",inline"`
}

// ReadProjectFile parses a project file. An unknown or duplicate key is an error
// with its line and column. The suite's directory becomes relative to the working
// directory. path is the file's path, for that and for errors.
func ReadProjectFile(path string, text []byte) (ProjectFile, error) {
	var p ProjectFile
	if err := yaml.UnmarshalWithOptions(text, &p, yaml.Strict()); errors.Is(err, bench.ErrInvalid) {
		return ProjectFile{}, fmt.Errorf("%s: %w", path, err)
	} else if err != nil {
		return ProjectFile{}, fmt.Errorf("%w: %s", bench.ErrInvalid, placed(path, err))
	}
	if p.Name == "" {
		return ProjectFile{}, fmt.Errorf("%w: %s has no name; write one, such as 'name: go'", bench.ErrInvalid, path)
	}
	if err := errors.Join(bench.CheckName("project", p.Name), p.Check()); err != nil {
		return ProjectFile{}, fmt.Errorf("%s: %w", path, err)
	}
	if p.Suite != "" && !filepath.IsAbs(p.Suite) {
		p.Suite = filepath.Join(filepath.Dir(path), filepath.FromSlash(p.Suite))
	}
	return p, nil
}

// placed formats an error of the YAML library as compilers do: file:line:column:
// message.
func placed(path string, err error) string {
	var inYAML yaml.Error
	if !errors.As(err, &inYAML) {
		return fmt.Sprintf("%s: %v", path, err)
	}
	if at := inYAML.GetToken(); at != nil && at.Position != nil {
		return fmt.Sprintf("%s:%d:%d: %s", path, at.Position.Line, at.Position.Column, inYAML.GetMessage())
	}
	return fmt.Sprintf("%s: %s", path, inYAML.GetMessage())
}
