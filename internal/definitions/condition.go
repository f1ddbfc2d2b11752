package definitions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/interpreter"
)

// Bounds of conditions. Cost is counted by CEL: about one for each step; Kubernetes
// allows a million for one expression, which it estimates at a tenth of a second.
const (
	maxExpression  = 2000      // characters
	maxDepth       = 100       // nested parts
	expressionCost = 1_000_000 // of one evaluation
	totalCost      = 5_000_000 // of all evaluations of an expansion
	checkEvery     = 100       // steps of a loop between two looks whether to stop
)

// condition is a compiled expression.
type condition struct {
	at      position
	text    string
	program cel.Program
	// known is the answer of a condition written as true or false.
	known *bool
}

// language compiles conditions.
type language struct{ base *cel.Env }

// newLanguage returns CEL without functions on dates, which read the machine's table of time
// zones.
func newLanguage() (*language, error) {
	var excluded []*env.Function
	for _, name := range []string{
		"timestamp", "duration", "getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear",
		"getHours", "getMinutes", "getSeconds", "getMilliseconds",
	} {
		excluded = append(excluded, &env.Function{Name: name})
	}
	base, err := cel.NewCustomEnv(
		cel.StdLib(cel.StdLibSubset(&env.LibrarySubset{ExcludeFunctions: excluded})),
		cel.ParserExpressionSizeLimit(maxExpression), cel.ParserRecursionLimit(maxDepth),
	)
	if err != nil {
		return nil, fmt.Errorf("preparing conditions: %w", err)
	}
	return &language{base}, nil
}

func celType(t Type) *cel.Type {
	switch t {
	case TypeInt:
		return cel.IntType
	case TypeBool:
		return cel.BoolType
	case TypeList:
		return cel.ListType(cel.StringType)
	}
	return cel.StringType
}

// compile reads a condition over variables of these types; nil if it has problems.
func (l *language) compile(v *value, types map[string]Type, ps *problems) *condition {
	if v.kind == boolean {
		known := strings.EqualFold(v.text, "true")
		return &condition{at: v.at, text: v.text, known: &known}
	}
	if v.kind != textual {
		ps.add(v.at, "this is %s; write a condition, such as \"branch == 'main'\"", v.kind)
		return nil
	}
	options := make([]cel.EnvOption, 0, len(types))
	for _, name := range slices.Sorted(maps.Keys(types)) {
		options = append(options, cel.Variable(name, celType(types[name])))
	}
	extended, err := l.base.Extend(options...)
	if err != nil {
		ps.add(v.at, "the variables of this condition cannot be declared: %v", err)
		return nil
	}
	ast, issues := extended.Compile(v.text)
	if issues != nil && issues.Err() != nil {
		for _, e := range issues.Errors() {
			at := v.at
			if v.exact > 0 && e.Location.Line() == 1 {
				at.column += v.exact - 1 + max(0, e.Location.Column())
			}
			message := e.Message
			if strings.Contains(message, "undeclared reference") {
				message += "; known are " + strings.Join(slices.Sorted(maps.Keys(types)), ", ")
			}
			ps.add(at, "condition: %s", message)
		}
		return nil
	}
	if ast.OutputType() != cel.BoolType {
		ps.add(v.at, "the condition gives %s; write one that is true or false", ast.OutputType())
		return nil
	}
	program, err := extended.Program(ast, cel.CostLimit(expressionCost), cel.InterruptCheckFrequency(checkEvery))
	if err != nil {
		ps.add(v.at, "condition: %v", err)
		return nil
	}
	return &condition{at: v.at, text: v.text, program: program}
}

// holds evaluates the condition and returns the cost.
func (c *condition) holds(ctx context.Context, s scope) (bool, uint64, error) {
	if c.known != nil {
		return *c.known, 0, nil
	}
	out, details, err := c.program.ContextEval(ctx, map[string]any(s))
	var cost uint64
	if details != nil && details.ActualCost() != nil {
		cost = *details.ActualCost()
	}
	if err != nil {
		if stopped := context.Cause(ctx); stopped != nil {
			return false, cost, fmt.Errorf("evaluating the condition %q: %w", c.text, stopped)
		}
		if cancelled, ok := errors.AsType[interpreter.EvalCancelledError](err); ok && cancelled.Cause == interpreter.CostLimitExceeded {
			return false, cost, &placedError{c.at, fmt.Sprintf("the condition %q takes more than %d steps; make it simpler, or its lists shorter", c.text, expressionCost)}
		}
		return false, cost, &placedError{c.at, fmt.Sprintf("the condition %q fails: %v", c.text, err)}
	}
	answer, ok := out.Value().(bool)
	if !ok {
		return false, cost, &placedError{c.at, fmt.Sprintf("the condition %q gives %v; write one that is true or false", c.text, out.Value())}
	}
	return answer, cost, nil
}
