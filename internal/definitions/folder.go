package definitions

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// Bounds of a folder.
const (
	maxFiles  = 1000
	maxFolder = 8 << 20 // bytes
)

// Folder is a definitions folder that was read without problems.
type Folder struct {
	hash     string
	files    map[string][]byte
	branches branches
	graphs   map[string]*graphTemplate
	jobs     map[string]*jobTemplate
}

// jobTemplate is a job before its parameters are filled in.
type jobTemplate struct {
	name, description string
	parameters        []Parameter
	body              body
}

// graphTemplate is a graph before its parameters are filled in.
type graphTemplate struct {
	name, description string
	file              string
	at                position
	parameters        []Parameter
	// only lists the branches that the template is for, as names or patterns; empty means all.
	only  []string
	nodes []nodeTemplate
}

// nodeTemplate is a node, or one for each entry of lists.
type nodeTemplate struct {
	at            position
	name          *value
	loops         []loop
	when          *condition
	needs         []need
	limit, latest *value
	// job is a job template, filled in with these values, or else body the job itself.
	job  *jobTemplate
	with []pair
	body *body
}

// loop is a variable that takes each entry of a list.
type loop struct {
	name string
	at   position
	list *value
}

// need is an input, or a pattern of several.
type need struct {
	at       position
	node     *value
	on       graph.Condition
	optional bool
}

// Read reads a folder. The error is an [*Error] if the folder has problems.
func Read(fsys fs.FS) (*Folder, error) {
	files, err := readFiles(fsys)
	if err != nil {
		return nil, err
	}
	return understand(files)
}

// FromFiles reads a folder from the texts of its files, by their slash-separated names. It
// refuses what [Read] refuses, and files that define nothing.
func FromFiles(texts map[string]string) (*Folder, error) {
	if len(texts) > maxFiles {
		return nil, fmt.Errorf("%w: the folder has more than %d definitions; divide it", bench.ErrInvalid, maxFiles)
	}
	ps, size := &problems{}, 0
	files := make(map[string][]byte, len(texts))
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if size += len(texts[name]); size > maxFolder {
			return nil, fmt.Errorf("%w: the folder's definitions have more than %d MB; divide it", bench.ErrInvalid, maxFolder>>20)
		}
		if why := misplaced(name); why != nil {
			ps.add(position{file: name}, "%v", why)
		}
		files[name] = []byte(texts[name])
	}
	if err := ps.err(); err != nil {
		return nil, err
	}
	return understand(files)
}

func understand(files map[string][]byte) (*Folder, error) {
	l, err := newLanguage()
	if err != nil {
		return nil, err
	}
	f := &Folder{hash: hashOf(files), files: files, graphs: make(map[string]*graphTemplate), jobs: make(map[string]*jobTemplate)}
	ps := &problems{}
	trees := make(map[string]*value)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if v := parse(name, files[name], ps); v != nil {
			trees[name] = v
		}
	}
	if v := trees[branchesFile]; v != nil {
		f.branches = readBranches(v, ps)
	}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		if strings.HasPrefix(name, "jobs/") {
			t := f.readJob(name, trees[name], ps)
			f.jobs[t.name] = t
		}
	}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		if strings.HasPrefix(name, "graphs/") {
			t := f.readGraph(name, trees[name], l, ps)
			f.graphs[t.name] = t
		}
	}
	f.branches.settle(f.graphs, ps)
	if len(ps.list) == 0 && len(f.graphs) == 0 {
		ps.add(position{file: "graphs"}, "the folder has no graph template; write one as graphs/NAME.yaml")
	}
	if err := ps.err(); err != nil {
		return nil, err
	}
	return f, nil
}

// readFiles returns the files that define something.
func readFiles(fsys fs.FS) (map[string][]byte, error) {
	files, size := make(map[string][]byte), int64(0)
	ps := &problems{}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && strings.HasPrefix(path.Base(name), ".") {
				return fs.SkipDir
			}
			return nil
		}
		if ext := path.Ext(name); ext != ".yaml" && ext != ".yml" {
			return nil
		}
		if why := misplaced(name); why != nil {
			ps.add(position{file: name}, "%v", why)
			return nil
		}
		if !entry.Type().IsRegular() {
			ps.add(position{file: name}, "this is a link or special file; copy what it points to")
			return nil
		}
		if len(files) == maxFiles {
			return fmt.Errorf("%w: the folder has more than %d definitions; divide it", bench.ErrInvalid, maxFiles)
		}
		data, err := readFile(fsys, name, maxFolder-size)
		if err != nil {
			return err
		}
		if size += int64(len(data)); size > maxFolder {
			return fmt.Errorf("%w: the folder's definitions have more than %d MB; divide it", bench.ErrInvalid, maxFolder>>20)
		}
		files[name] = data
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading definitions: %w", err)
	}
	return files, ps.err()
}

// misplaced says why a file of that name is not a definition.
func misplaced(name string) error {
	switch dir := path.Dir(name); {
	case name == branchesFile:
		return nil
	case (dir == "graphs" || dir == "jobs") && path.Ext(name) == ".yaml":
		return bench.CheckName("template", strings.TrimSuffix(path.Base(name), ".yaml"))
	}
	return fmt.Errorf("this file defines nothing here; definitions are %s, graphs/NAME.yaml and jobs/NAME.yaml", branchesFile)
}

// readFile reads a file, but at most one byte more than the bound.
func readFile(fsys fs.FS, name string, most int64) (data []byte, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// hashOf returns the content hash of files. Each part is preceded by its length, so that
// different files never give the same bytes.
func hashOf(files map[string][]byte) string {
	h := sha256.New()
	part := func(data []byte) {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(data)))
		h.Write(length[:])
		h.Write(data)
	}
	part([]byte("benchloom definitions 1"))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		part([]byte(name))
		part(files[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

func baseName(file string) string { return strings.TrimSuffix(path.Base(file), ".yaml") }

// typesOf returns the types of the variables that parameters add.
func (f *Folder) typesOf(parameters []Parameter) map[string]Type {
	types := f.branches.types()
	for _, p := range parameters {
		types[p.Name] = p.Type
	}
	return types
}

func (f *Folder) readJob(file string, v *value, ps *problems) *jobTemplate {
	d := &decoder{problems: ps}
	o := d.object(v, append([]string{"description", "parameters"}, kindKeys()...)...)
	t := &jobTemplate{name: baseName(file), description: o.text("description"), parameters: d.parameters(o)}
	b := o.body()
	if b == nil {
		ps.add(v.at, "the template defines no job; write one of %s", strings.Join(kindKeys(), ", "))
		return t
	}
	t.body = *b
	checkHoles(b.value, f.typesOf(t.parameters), ps)
	d.job(b)
	return t
}

func (f *Folder) readGraph(file string, v *value, l *language, ps *problems) *graphTemplate {
	d := &decoder{problems: ps}
	o := d.object(v, "description", "parameters", "branches", "nodes")
	o.need("nodes")
	t := &graphTemplate{name: baseName(file), file: file, at: v.at, description: o.text("description"), parameters: d.parameters(o), only: o.texts("branches")}
	if only, given := o.get("branches"); given && f.branches.list != nil {
		for _, one := range t.only {
			if !slices.ContainsFunc(f.branches.list, func(b Branch) bool { return b.Name == one || matches(one, b.Name) || matches(b.Name, one) }) {
				ps.add(only.at, "%s has no branch %q", branchesFile, one)
			}
		}
	}
	for _, item := range o.items("nodes") {
		t.nodes = append(t.nodes, f.readNode(d, item, f.typesOf(t.parameters), l))
	}
	return t
}

func (f *Folder) readNode(d *decoder, v *value, types map[string]Type, l *language) nodeTemplate {
	o := d.object(v, append([]string{"name", "for", "if", "needs", "limit", "latest", "job", "with"}, kindKeys()...)...)
	o.need("name")
	n := nodeTemplate{at: v.at}
	n.loops = d.loops(o, types)
	for _, one := range n.loops {
		types[one.name] = TypeString
	}
	if w, given := o.get("if"); given {
		n.when = l.compile(w, types, d.problems)
	}
	n.name, _ = o.get("name")
	n.limit, _ = o.get("limit")
	n.latest, _ = o.get("latest")
	for _, field := range []*value{n.name, n.limit, n.latest} {
		checkHoles(field, types, d.problems)
	}
	o.text("name")
	o.seconds("limit")
	o.truth("latest")
	n.needs = d.needs(o, types)
	f.readWork(d, o, types, &n)
	return n
}

// loops reads the lists that a node is made for.
func (d *decoder) loops(o object, types map[string]Type) []loop {
	v, given := o.get("for")
	if !given {
		return nil
	}
	if v.kind != mapping {
		d.mistyped(v, "a mapping of variables and lists, such as {target: \"${targets}\"}")
		return nil
	}
	var loops []loop
	for _, p := range v.pairs {
		err := checkVariableName(p.key)
		if _, taken := types[p.key]; err == nil && taken {
			err = fmt.Errorf("the variable %q is there already; use another name", p.key)
		}
		if err != nil {
			d.add(p.at, "%v", err)
			continue
		}
		checkHoles(p.value, types, d.problems)
		if p.value.kind != listing && types[p.value.whole()] != TypeList {
			d.add(p.value.at, "this is no list; write one, or a parameter of type list, such as \"${targets}\"")
			continue
		}
		loops = append(loops, loop{p.key, p.at, p.value})
	}
	return loops
}

func (d *decoder) needs(o object, types map[string]Type) []need {
	v, given := o.get("needs")
	if !given {
		return nil
	}
	items := []*value{v}
	if v.kind == listing {
		items = v.list
	}
	var needs []need
	for _, item := range items {
		n := need{at: item.at, node: item, on: graph.OnSuccess}
		if item.kind == mapping {
			one := d.object(item, "node", "on", "optional")
			one.need("node")
			if on, given := one.get("on"); given {
				c, err := graph.ParseCondition(literalText(on))
				if err != nil || on.holes {
					d.add(on.at, "condition %q: use success, resolved or any", on.text)
				}
				n.on = c
			}
			n.optional = one.truth("optional")
			var named bool
			if n.node, named = one.get("node"); !named {
				continue
			}
		}
		checkHoles(n.node, types, d.problems)
		d.scalar(n.node, "the name of a node")
		needs = append(needs, n)
	}
	return needs
}

// readWork reads the job of a node.
func (f *Folder) readWork(d *decoder, o object, types map[string]Type, n *nodeTemplate) {
	n.body = o.body()
	name, template := o.get("job")
	with, filled := o.get("with")
	switch {
	case template && n.body != nil:
		d.add(n.body.at, "the node has a job template and a job of its own; write one of them")
	case !template && n.body == nil:
		d.add(n.at, "the node has no job; name a job template with 'job', or write one of %s", strings.Join(kindKeys(), ", "))
	case !template && filled:
		d.add(with.at, "'with' fills in a job template; name one with 'job'")
	case n.body != nil:
		checkHoles(n.body.value, types, d.problems)
		d.job(n.body)
	}
	if !template {
		return
	}
	text := d.scalar(name, "the name of a job template")
	if n.job = f.jobs[text]; n.job == nil {
		has := "the folder has none"
		if len(f.jobs) > 0 {
			has = "there are " + strings.Join(slices.Sorted(maps.Keys(f.jobs)), ", ")
		}
		d.add(name.at, "there is no job template %q; %s", name.text, has)
		return
	}
	given := make(map[string]bool)
	if filled {
		if with.kind != mapping {
			d.mistyped(with, "a mapping of parameters and values")
		}
		n.with = with.pairs
		checkHoles(with, types, d.problems)
	}
	for _, p := range n.with {
		given[p.key] = true
		i := slices.IndexFunc(n.job.parameters, func(one Parameter) bool { return one.Name == p.key })
		if i < 0 {
			d.add(p.at, "the job template %s has no parameter %q", n.job.name, p.key)
			continue
		}
		if !p.value.holes {
			if _, err := n.job.parameters[i].read(p.value); err != nil {
				d.add(p.value.at, "%v", err)
			}
		}
	}
	for _, p := range n.job.parameters {
		if p.Default == nil && !given[p.Name] {
			d.add(n.at, "the job template %s needs a value for its parameter %q (%s); give one in 'with'", n.job.name, p.Name, p.Type)
		}
	}
}

// Hash returns the content hash of the folder's definitions: SHA-256, 64 hexadecimal
// digits. Other files do not count.
func (f *Folder) Hash() string { return f.hash }

// Files returns the texts of the folder's definitions by their names, for [FromFiles].
func (f *Folder) Files() map[string]string {
	texts := make(map[string]string, len(f.files))
	for name, data := range f.files {
		texts[name] = string(data)
	}
	return texts
}

// Rule returns the entry for a branch.
func (f *Folder) Rule(branch string) (Branch, error) { return f.branches.find(branch) }

// Template describes a graph template.
type Template struct {
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	Parameters  []Parameter `json:"parameters,omitempty"`
	// Branches lists the branches that the template is for, as names or patterns; empty:
	// all.
	Branches []string `json:"branches,omitempty"`
}

// Templates returns the graph templates by name.
func (f *Folder) Templates() []Template {
	list := make([]Template, 0, len(f.graphs))
	for _, name := range slices.Sorted(maps.Keys(f.graphs)) {
		t := f.graphs[name]
		list = append(list, Template{t.name, t.description, t.parameters, t.only})
	}
	return list
}

// JobTemplates returns the names of the job templates.
func (f *Folder) JobTemplates() []string { return slices.Sorted(maps.Keys(f.jobs)) }

// Branches returns the branches and patterns of branches; none if there is no file of them.
func (f *Folder) Branches() []Branch { return slices.Clone(f.branches.list) }

// ParseParameters reads parameters of a graph template from a command line, as name=value.
func (f *Folder) ParseParameters(template string, list []string) (map[string]Value, error) {
	t, err := f.template(template)
	if err != nil {
		return nil, err
	}
	out := make(map[string]Value)
	for _, one := range list {
		name, text, ok := strings.Cut(one, "=")
		if !ok {
			return nil, fmt.Errorf("%w: %q; write name=value", bench.ErrInvalid, one)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("%w: the parameter %q is given twice", bench.ErrInvalid, name)
		}
		out[name] = text // the expansion reports an unknown one
		if i := slices.IndexFunc(t.parameters, func(p Parameter) bool { return p.Name == name }); i >= 0 {
			if out[name], err = t.parameters[i].parse(text); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (f *Folder) template(name string) (*graphTemplate, error) {
	t := f.graphs[name]
	if t == nil {
		return nil, fmt.Errorf("%w: there is no graph template %q; there are %s", bench.ErrInvalid, name, strings.Join(slices.Sorted(maps.Keys(f.graphs)), ", "))
	}
	return t, nil
}
