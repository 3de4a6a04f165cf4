package embedded_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// A reader cannot keep other readers out with statements that nothing ends: the engine is
// started again without them.
func TestStatementsThatNothingEnds(t *testing.T) {
	t.Parallel()
	found, err := embedded.Find(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := embedded.NewClickHouse(embedded.ClickHouseConfig{Engine: found, Dir: t.TempDir(), StuckAfter: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	embeddedtest.Run(t, engine)
	pid := engine.PID()
	files := filepath.Join("/proc", fmt.Sprint(pid), "fd")
	open, err := os.ReadDir(files)
	if err != nil {
		t.Fatal(err)
	}
	pipes := 0
	for _, fd := range open {
		if to, _ := os.Readlink(filepath.Join(files, fd.Name())); !strings.HasPrefix(to, "pipe:") {
			continue
		}
		pipes++
		go func() {
			_, _ = ask(t, engine.HTTPURL(), embedded.UserReader, engine.ReaderPassword(), "SELECT file('/proc/self/fd/"+fd.Name()+"') SETTINGS max_execution_time = 1")
		}()
	}
	if pipes == 0 {
		t.Skip("this engine has no pipe to wait at")
	}
	embeddedtest.Eventually(t, soon, func() error {
		if now := engine.PID(); now == pid || now == 0 {
			return fmt.Errorf("process %d runs, %d was the first", now, pid)
		}
		return engine.Healthy(t.Context())
	})
	if n, err := ask(t, engine.HTTPURL(), embedded.UserReader, engine.ReaderPassword(), "SELECT 1"); err != nil || n != "1" {
		t.Errorf("a reader gets %q, %v", n, err)
	}
}
