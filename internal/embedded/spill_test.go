package embedded_test

import (
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// A reader's sort that does not fit in memory is ended before it fills the disk; one that takes less is not.
func TestSortsOfReadersLeaveDisk(t *testing.T) {
	t.Parallel()
	found, err := embedded.Find(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := embedded.NewClickHouse(embedded.ClickHouseConfig{Engine: found, Dir: t.TempDir(), MaxSpillBytes: 150 << 20})
	if err != nil {
		t.Fatal(err)
	}
	embeddedtest.Run(t, engine)
	sorted := func(rows string) (string, error) {
		return ask(t, engine.HTTPURL(), embedded.UserReader, engine.ReaderPassword(),
			"SELECT randomPrintableASCII(200) AS s FROM numbers("+rows+") ORDER BY s FORMAT Null SETTINGS max_bytes_before_external_sort = 100000000, max_memory_usage = 2000000000, max_execution_time = 120")
	}
	if n, err := sorted("600000"); err != nil || n != "" {
		t.Errorf("a sort within the bound gives %q, %v", n, err)
	}
	if n, err := sorted("20000000"); err == nil || !strings.Contains(err.Error(), "QUERY_WAS_CANCELLED") && !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("a sort of 4 GB gives %q, %v; want it ended", n, err)
	}
	if err := engine.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
}
