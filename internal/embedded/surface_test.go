package embedded_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// What was decided on a name of the engine that can reach files, the network or the environment. A name without one
// cannot, as far as its documentation says.
const (
	byKernel   = "kernel"   // it opens a file that a statement names, which the confinement refuses
	byNetwork  = "network"  // it connects to a server, which the confinement refuses
	ofMachine  = "machine"  // it tells a figure or a name of the machine or the engine
	byGrant    = "grant"    // a reader does not have the grant
	byConstant = "constant" // a reader cannot change the setting
)

// surface is the engine's own list of a kind of name, and the decisions kept beside this test.
func surface(t *testing.T, c *embedded.ClickHouse, kind string) (decided map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "surface", kind+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	decided = map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, decision, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		switch decision {
		case "", byKernel, byNetwork, ofMachine, byGrant, byConstant:
			decided[name] = decision
		default:
			t.Errorf("%s: %s has the decision %q, which is not one", kind, name, decision)
		}
	}
	here := map[string]string{}
	for name := range strings.SplitSeq(must(t, c, "SELECT DISTINCT name FROM system."+kind+" FORMAT TSVRaw"), "\n") {
		decision, known := decided[name]
		if !known {
			t.Errorf("%s: %q is new in this engine. Decide whether a statement reaches files, the network or the environment by it, "+
				"and add it to testdata/surface/%s.txt", kind, name, kind)
		}
		here[name] = decision
	}
	return here
}

// An engine that brings a new way to a file, a server or the environment fails this test until it is decided on.
func TestEngineSurfaceIsDecidedOn(t *testing.T) {
	t.Parallel()
	s := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	for _, kind := range []string{"functions", "formats", "table_engines", "dictionary_sources"} {
		surface(t, s.Engine, kind)
	}
	as := func(sql string) (string, error) {
		return ask(t, s.ClickHouseHTTP, embedded.UserReader, s.Engine.ReaderPassword(), sql)
	}
	for name, decision := range surface(t, s.Engine, "table_functions") {
		if decision != byGrant {
			continue
		}
		for _, arguments := range []string{"'/etc/passwd'", "'/etc/passwd', 'LineAsString'", "'/etc/passwd', 'TSV', 'a String'"} {
			if got, err := as("SELECT * FROM " + name + "(" + arguments + ")"); err == nil {
				t.Errorf("the reader may use %s(%s): %q", name, arguments, got)
			}
		}
	}
	for name, decision := range surface(t, s.Engine, "settings") {
		if decision != byConstant {
			continue
		}
		if got, err := as("SELECT readonly FROM system.settings WHERE name = '" + name + "'"); err != nil || got != "1" {
			t.Errorf("the reader may set %s: readonly %q, %v", name, got, err)
		}
	}
}

// A reader's statements have a share of the engine: places, memory and threads that it cannot enlarge.
func TestReadersHaveAShare(t *testing.T) {
	t.Parallel()
	c := newEngine(t, t.TempDir())
	embeddedtest.Run(t, c)
	as := func(sql string) (string, error) {
		return ask(t, c.HTTPURL(), embedded.UserReader, c.ReaderPassword(), sql)
	}
	for _, sql := range []string{
		"SELECT 1 SETTINGS max_threads = 64",
		"SELECT 1 SETTINGS max_final_threads = 64",
		"SELECT 1 SETTINGS priority = 0",
		"SELECT 1 SETTINGS priority = 1",
		"SELECT 1 SETTINGS low_priority_query_wait_time_ms = 0",
		"SELECT 1 SETTINGS max_concurrent_queries_for_user = 0",
	} {
		if got, err := as(sql); err == nil {
			t.Errorf("the reader may %q: %q", sql, got)
		}
	}
}
