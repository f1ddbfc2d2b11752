package hostile_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// finding is something that broke a running service.
type finding struct {
	// number of the group it was found in, with a letter.
	number, what string
	// tests are functions of this package, which try it on a running stack, and further ones
	// as package.Function of another directory.
	tests []string
}

// findings are all that were made; the numbers have no gaps, and nothing is ever removed.
var findings = []finding{
	{"1", "A collector's token uploaded an archive into another collector's build: the release ran planted code.", []string{"TestAHostileCollector"}},
	{"2a", "The fence checked neither dispatch nor pool nor target: a token took another's open job.", []string{"TestAHostileCollector"}},
	{"2b", "A token closed another's live run as lost.", []string{"TestAHostileCollector"}},
	{"2c", "A token read the secret environment of another's job.", []string{"TestAHostileCollector"}},
	{"2d", "A forged result of 1 µs was accepted under a copied hardware ID.", []string{"TestAHostileCollector"}},
	{"2e", "Heartbeats wrote the progress of other runs.", []string{"TestAHostileCollector"}},
	{"2f", "The shared token passed every check of a collector's own runs.", []string{"TestTheSharedTokenOnlyEnrols"}},
	{"3", "A Temporal that stalls for 4 s ended the run under way.", []string{"TestLongAStalledTemporalEndsNoMeasurement"}},
	{"4a", "One result of 100,000 iterations made the orchestrator allocate 80 GB, again after each restart.", []string{"TestResultsAreBoundedByThePlan"}},
	{"4b", "One anonymous comparison made the API allocate as much.", []string{"TestAComparisonBoundsItsMemory"}},
	{"5a", "60,000 requests with invented HTTP methods grew the API to 700 MB.", []string{"TestInventedMethodsCostNoMemory"}},
	{"5b", "Twelve clients that read an export slowly took all database connections.", []string{"TestSlowReadersTakeNoConnections"}},
	{"6a", "A proxy's 404 made six measured blocks refused.", []string{"TestAProxysAnswerIsNoRefusal"}},
	{"6b", "A proxy's limit of bodies would have done the same.", []string{"TestAProxysAnswerIsNoRefusal"}},
	{"6c", "A full disk dropped a block although the API could take it.", []string{"TestAFullDiskDropsNoBlock", "activities/collection.TestAFullDiskLosesNoBlock"}},
	{"6d", "Nothing delivered blocks again that were set aside.", []string{"TestARefusedBlockIsDeliveredAgain", "cmd/benchloom.TestWithService"}},
	{"6e", "The spool synced its files and not their directory.", []string{"TestAKilledCollectorHasItsBlock", "activities/collection.TestABlockIsDurableWithItsName"}},
	{"7a", "An orchestrator ran against a newer schema.", []string{"TestNoProcessRunsAgainstANewerSchema"}},
	{"7b", "Migrations dropped columns under running replicas.", []string{"TestLongAMigrationLeavesOlderReplicasAtWork", "internal/store.TestMigrationsLeaveWhatTheVersionBeforeUses"}},
	{"7c", "An idle service grew Temporal's database by some 3 GB a month.", []string{"TestLongSchedulesForgetClosedWorkflows"}},
	{"7d", "Run logs, commands, suites and collectors' folders stayed for ever.", []string{"TestLongNothingIsKeptForEver", "TestCollectorsRemoveUnusedFolders", "internal/store.TestEveryKindIsRemoved", "internal/store.TestEveryTableHasItsRetention"}},
	{"7e", "2 MB of archive made 300,000 files.", []string{"TestAnArchiveOfCountlessFilesIsRefused"}},
	{"7f", "Git for builds got the whole environment of its process, tokens included.", []string{"TestGitSeesNoSecretsOfItsProcess", "internal/revision.TestGitSeesNoSecrets"}},
	{"7g", "'benchloom logs' printed the terminal escapes of benchmarks.", []string{"TestLogsPrintNoTerminalEscapes"}},
	{"7h", "Cached suites were not hashed again.", []string{"TestAChangedSuiteOfACollectorIsNotRun", "internal/suite.TestAChangedCopyIsNoticed"}},
	{"8a", "A benchmark read all tokens and environments, and was the superuser of Postgres.", []string{"TestLongAHostileBenchmark"}},
	{"8b", "A benchmark in a parent control group outlived its limits and hung its collector.", []string{"TestLongAHostileBenchmark"}},
	{"8c", "A command that filled its folders stalled the stores, and readiness said nothing.", []string{"TestLongAHostileBenchmark", "internal/diskspace.TestTheReserveIsATwentiethOfTheFileSystem"}},
	{"8d", "Foreign hosts were answered: DNS rebinding read everything.", []string{"TestLongAForeignPageInABrowser", "TestForeignCallsAreRefusedAtEveryPort", "TestClosedReadingInABrowser", "api.TestForeignPagesReachNoPath"}},
	{"8e", "Answers showed environments of commands and passwords of addresses.", []string{"TestLongNoPlantedSecretIsShown", "api.TestNoAnswerLogOrWorkflowHoldsSecrets"}},
	{"8f", "Whoever reached Temporal took tasks from collectors' queues and ended workflows.", []string{"TestLongAHostileBenchmark", "TestForeignCallsAreRefusedAtEveryPort", "deploy/temporal-dev.TestCallsNeedAToken", "deploy/temporal-dev.TestWebUIFollowsTheRoleOfItsVisitor"}},
	{"9a", "A command changed what other projects' suites keep on a collector, and so what they compile and measure.", []string{"TestLongAHostileBenchmark", "internal/measure.TestACommandChangesOnlyTheDirectoriesOfItsJob", "internal/jobrun.TestAJobSeesTheCacheOfItsSuiteOnly"}},
	{"9b", "What suites keep counted to no limit: a benchmark filled the disk with it, others were blamed, and it stayed.", []string{"TestLongAHostileBenchmark", "internal/measure.TestFilesThatOutliveTheirJobCountToItsLimits", "internal/jobrun.TestACommandThatFillsItsCacheIsEndedLikeOthers", "activities/collection.TestACacheThatAJobHasFilledIsGoneBeforeTheNext"}},
	{"9c", "A suite had any variable of its collector passed to its steps, secrets of the operator among them.", []string{"TestLongAHostileBenchmark", "internal/jobrun.TestASuiteReadsOnlyVariablesThatItsOperatorReleased"}},
	{"9d", "A token of one project ended the workflows of all.", []string{"TestAnAdminOfOneProjectEndsNoWorkflow", "deploy/temporal-dev.TestCallsNeedAToken", "api.TestTemporalsWebUIHasTheSignInOfTheAPI"}},
}

// wantFindings counts them, so that none is lost.
const wantFindings = 35

func TestEveryFindingHasATest(t *testing.T) {
	t.Parallel()
	require.Len(t, findings, wantFindings)
	seen := make(map[string]bool)
	functions := make(map[string]map[string]bool)
	for _, f := range findings {
		require.False(t, seen[f.number], f.number)
		seen[f.number] = true
		require.NotEmpty(t, f.tests, "finding %s: %s", f.number, f.what)
		require.NotContains(t, f.tests[0], ".", "finding %s is not tried on a running stack", f.number)
		for _, name := range f.tests {
			dir, function := ".", name
			if at := strings.LastIndex(name, "."); at >= 0 {
				dir, function = filepath.Join("../../..", name[:at]), name[at+1:]
			}
			if functions[dir] == nil {
				functions[dir] = testsOf(t, dir)
			}
			require.True(t, functions[dir][function], "finding %s (%s): there is no test %s", f.number, f.what, name)
		}
	}
}

// testsOf lists the test functions of a directory.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, dir)
	names := make(map[string]bool)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}
