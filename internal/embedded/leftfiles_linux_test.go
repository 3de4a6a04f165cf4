package embedded_test

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// No table function that the engine has leaves a file where a reader says, whatever it answers: such a file can keep
// the engine from starting again.
func TestReadersLeaveNoFiles(t *testing.T) {
	t.Parallel()
	if !embedded.Confines() {
		t.Skip("this kernel does not confine the engine")
	}
	dir := t.TempDir()
	engine := newEngine(t, dir)
	embeddedtest.Run(t, engine)
	functions := strings.Fields(must(t, engine, "SELECT name FROM system.table_functions ORDER BY name"))
	if len(functions) < 50 {
		t.Fatalf("the engine has %d table functions", len(functions))
	}
	var asking sync.WaitGroup
	turn := make(chan struct{}, 8) // of a reader's 16 places
	for _, f := range functions {
		for _, args := range []string{"'left-%'", "'left-%','t'", "'../data/left-%','t'", "'left-%','CSV','a Int8'", "'file:left-%?mode=rwc','t'"} {
			turn <- struct{}{}
			asking.Go(func() {
				defer func() { <-turn }()
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // some wait for servers that they may not reach
				defer cancel()
				_, _ = askIn(ctx, engine.HTTPURL(), embedded.UserReader, engine.ReaderPassword(), "SELECT * FROM "+f+"("+strings.ReplaceAll(args, "%", f)+") LIMIT 1 SETTINGS max_execution_time = 2")
			})
		}
	}
	asking.Wait()
	for _, file := range filesNamed(t, dir, "left-") {
		t.Errorf("a reader left %s", file)
	}
}

// filesNamed are the files below dir whose names have a text.
func filesNamed(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.Contains(e.Name(), text) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
