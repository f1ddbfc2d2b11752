package suite

import "time"

// FileName is the file that makes a folder a suite.
const FileName = "suite.yaml"

// document represents suite.yaml. Field order is the order in which keys are
// listed to people; doc tags become descriptions of the JSON Schema.
type document struct {
	Name        text                  `yaml:"name" jsonschema:"required" doc:"Name of the suite: lower-case letters, digits, '.', '_' and '-'."`
	Description text                  `yaml:"description" doc:"What the suite measures, in a sentence."`
	Artifact    artifactSource        `yaml:"artifact" jsonschema:"required" doc:"Where the things under test come from."`
	Targets     words                 `yaml:"targets" doc:"Target tuples the suite can be measured on. Without it: any; x86_64-unknown-linux-gnu and aarch64-unknown-linux-gnu by default."`
	Metrics     metrics               `yaml:"metrics" doc:"Which metrics must be measurable, which have no noise, and how values of several iterations become one."`
	Iterations  count                 `yaml:"iterations" doc:"Measurements of each test case; default 5."`
	Warmups     count                 `yaml:"warmups" doc:"Iterations that are run first and not recorded; default 0."`
	Timeouts    timeouts              `yaml:"timeouts" doc:"Bounds; default 15m for preparing, 10m for one measured command."`
	PassEnv     words                 `yaml:"pass_env" doc:"Variables of the collector's environment that all prepare steps of benchmarks may see: proxy settings, for example. Measured commands never see them."`
	Vars        named[values]         `yaml:"vars" doc:"Variables for ${name}; a list stands for several arguments."`
	Env         named[text]           `yaml:"env" doc:"Environment of all commands."`
	Requires    []requirement         `yaml:"requires" doc:"What the machine or the artifact must have."`
	Profiles    named[parameter]      `yaml:"profiles" doc:"Ways of compiling, for compile-time benchmarks."`
	Backends    named[parameter]      `yaml:"backends" doc:"Code generators, for compile-time benchmarks and for runtime benchmarks whose procedure lists them."`
	Procedures  procedures            `yaml:"procedures" doc:"How the benchmarks of each kind are prepared and measured."`
	Benchmarks  []benchmark           `yaml:"benchmarks" jsonschema:"required" doc:"What is measured."`
	Sets        named[namedSelection] `yaml:"sets" doc:"Named selections. The set named default is used when none is asked for."`
}

type artifactSource struct {
	Provider   text           `yaml:"provider" jsonschema:"required,enum=go-toolchain,enum=goroot,enum=rustup,enum=directory,enum=url,enum=build" doc:"Kind of source."`
	Parameters named[setting] `yaml:"parameters" doc:"Parameters of the provider; {tag} and {target} stand for the artifact's."`
}

type metrics struct {
	Required  words       `yaml:"required" doc:"Metrics without which a machine cannot run the suite, for example instructions:u."`
	Exact     words       `yaml:"exact" doc:"Metrics without noise, for example allocs/op: any change of them counts, and one value of each side is enough. Sizes of files are exact anyway."`
	Aggregate named[text] `yaml:"aggregate" doc:"How the values of the iterations become one, by metric: min (default), median, mean or max."`
}

type timeouts struct {
	Prepare duration `yaml:"prepare" doc:"Bounds all prepare steps of one benchmark together, for example 10m."`
	Measure duration `yaml:"measure" doc:"Bounds one measured command, for example 90s."`
}

// parameter is a profile or a backend.
type parameter struct {
	Description text          `yaml:"description"`
	Targets     words         `yaml:"targets" doc:"Only on these targets."`
	Vars        named[values] `yaml:"vars"`
	Env         named[text]   `yaml:"env"`
	Requires    []requirement `yaml:"requires"`
}

type requirement struct {
	Command text      `yaml:"command" doc:"A program that must be on PATH."`
	File    text      `yaml:"file" doc:"A file that must exist."`
	Run     arguments `yaml:"run" doc:"A command that must exit with 0."`
	Reason  text      `yaml:"reason" jsonschema:"required" doc:"What is missing otherwise and what to do, for people."`
	at      position
}

type procedures struct {
	Compiletime *procedure `yaml:"compiletime" doc:"The measured command is the compilation."`
	Runtime     *procedure `yaml:"runtime" doc:"The measured command is a compiled program."`
}

// definition holds the settings of a procedure, which its benchmarks may override.
type definition struct {
	Files      text            `yaml:"files" doc:"Directory of the suite that ${prepared} begins as a copy of."`
	Vars       named[values]   `yaml:"vars"`
	Env        named[text]     `yaml:"env"`
	Requires   []requirement   `yaml:"requires"`
	Prepare    steps           `yaml:"prepare" doc:"Done once per benchmark, profile and backend, in ${prepared}."`
	Hardlink   words           `yaml:"hardlink" doc:"Directories below ${prepared} whose files are never changed in place; fresh copies link them."`
	Scenarios  named[scenario] `yaml:"scenarios" doc:"Situations in which a compile-time benchmark is measured."`
	Before     steps           `yaml:"before" doc:"Done in each iteration, unmeasured, in ${work}."`
	Measure    *measurement    `yaml:"measure" doc:"The measured command."`
	Profilers  named[profiler] `yaml:"profilers" doc:"How profilers are applied to the measured command, in addition to perf, callgrind and cachegrind."`
	Exclude    []exclusion     `yaml:"exclude" doc:"Combinations that are not measured."`
	Iterations count           `yaml:"iterations" doc:"Measurements of each test case."`
	Warmups    count           `yaml:"warmups" doc:"Iterations that are run first and not recorded."`
	Timeouts   timeouts        `yaml:"timeouts"`
}

type procedure struct {
	Backends words `yaml:"backends" doc:"Runtime only: backends with which each benchmark is measured; without it, none is named."`
	definition
	at position
}

type benchmark struct {
	Name        text  `yaml:"name" jsonschema:"required"`
	Description text  `yaml:"description"`
	Kind        text  `yaml:"kind" jsonschema:"enum=compiletime,enum=runtime" doc:"Default: the kind of the only procedure; runtime without any."`
	Category    text  `yaml:"category" jsonschema:"enum=primary,enum=secondary" doc:"How much a change in it matters; default primary."`
	Targets     words `yaml:"targets" doc:"Only on these targets."`
	MinSize     count `yaml:"min_size" doc:"Smallest size class of a collector for it; default 1."`
	definition
	at position
}

type scenario struct {
	Description text          `yaml:"description"`
	Vars        named[values] `yaml:"vars"`
	Env         named[text]   `yaml:"env"`
	Prepare     steps         `yaml:"prepare" doc:"Done once per test case, in a copy of what was prepared; iterations start from the outcome."`
	Before      steps         `yaml:"before" doc:"Done in each iteration, unmeasured, in ${work}."`
	Measure     *measurement  `yaml:"measure" doc:"The measured command."`
}

type measurement struct {
	Run     arguments   `yaml:"run" jsonschema:"required" doc:"Program and arguments."`
	Dir     text        `yaml:"dir" doc:"Working directory, relative to ${work}."`
	Env     named[text] `yaml:"env"`
	Network toggle      `yaml:"network" doc:"true: the command reaches the network. Without it, it has a loopback interface of its own."`
	Sizes   named[text] `yaml:"sizes" doc:"Metrics that are sizes of written files: size:<name> and a path or glob pattern below ${work}. An empty one is left out."`
	Output  text        `yaml:"output" jsonschema:"enum=benchfmt" doc:"benchfmt: the command prints result lines in Go's benchmark format; of several lines each has series of its own."`
	Metrics words       `yaml:"metrics" doc:"Units taken from the result lines; default all."`
	Record  text        `yaml:"record" jsonschema:"enum=all,enum=output" doc:"all (default), or output: only what the command prints and the sizes of its files, not the time and memory of its process, which mean nothing if the command itself decides how often it repeats its work."`
	at      position
}

// steps is a list of steps; nil means that none are given, empty that there are
// none.
type steps []step

type step struct {
	Run     arguments    `yaml:"run" doc:"Program and arguments."`
	Write   *fileText    `yaml:"write" doc:"Makes a file."`
	Append  *fileText    `yaml:"append" doc:"Adds text to the end of a file."`
	Replace *replacement `yaml:"replace" doc:"Replaces every occurrence of a text in a file."`
	Copy    *fileCopy    `yaml:"copy" doc:"Copies a file or directory."`
	Remove  text         `yaml:"remove" doc:"Deletes a file or directory."`
	Dir     text         `yaml:"dir" doc:"Working directory of run, relative to ${prepared} or ${work}."`
	Env     named[text]  `yaml:"env" doc:"Additional environment of run."`
	PassEnv words        `yaml:"pass_env" doc:"Variables of the collector's environment that run may see; prepare steps of procedures and benchmarks only."`
	Network toggle       `yaml:"network" doc:"true: run reaches the network; before steps only, because prepare steps always do."`
	at      position
}

type fileText struct {
	File text `yaml:"file" jsonschema:"required"`
	Text text `yaml:"text" jsonschema:"required"`
}

type replacement struct {
	File text `yaml:"file" jsonschema:"required"`
	Old  text `yaml:"old" jsonschema:"required"`
	New  text `yaml:"new" jsonschema:"required"`
}

type fileCopy struct {
	From text `yaml:"from" jsonschema:"required"`
	To   text `yaml:"to" jsonschema:"required"`
}

// exclusion leaves out the test cases that match all of its lists; an empty
// list matches everything.
type exclusion struct {
	Profile  words `yaml:"profile"`
	Scenario words `yaml:"scenario"`
	Backend  words `yaml:"backend"`
	Target   words `yaml:"target"`
	Reason   text  `yaml:"reason" jsonschema:"required" doc:"Why, for people."`
	at       position
}

type namedSelection struct {
	Description text  `yaml:"description"`
	Benchmarks  words `yaml:"benchmarks"`
	Profiles    words `yaml:"profiles"`
	Scenarios   words `yaml:"scenarios"`
	Backends    words `yaml:"backends"`
	Targets     words `yaml:"targets"`
	Iterations  count `yaml:"iterations"`
}

// text is a string with its position.
type text struct {
	value string
	at    position
}

func (t text) given() bool { return t.at != position{} }

// values is a variable's value: one string, or a list.
type values struct {
	texts []text
	list  bool
}

// setting is a provider's parameter, written like a variable.
type setting struct{ values }

// words is a list of plain strings; a single one may be written without
// brackets.
type words []text

// arguments is a command as a list; never a string that a shell would split.
type arguments []text

// count is a non-negative integer.
type count struct {
	value int
	at    position
}

// toggle is true or false.
type toggle struct {
	value bool
	at    position
}

type duration struct {
	value time.Duration
	at    position
}

// named is a mapping that keeps order and positions.
type named[T any] []entry[T]

type entry[T any] struct {
	name  string
	at    position
	value T
}

func (n named[T]) get(name string) (T, bool) {
	for _, e := range n {
		if e.name == name {
			return e.value, true
		}
	}
	var none T
	return none, false
}

func (n named[T]) names() []string {
	names := make([]string, len(n))
	for i, e := range n {
		names[i] = e.name
	}
	return names
}
