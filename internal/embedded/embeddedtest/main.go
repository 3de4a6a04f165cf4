package embeddedtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
)

// RequireEnv makes a missing engine a failure in place of a skip.
const RequireEnv = "ALMANAC_REQUIRE_ENGINE"

// databasePrefix marks the databases of tests; the users may do there what they may.
const databasePrefix = "test_"

// startTimeout bounds the start of a server: 0.3 s alone, more on a machine that is busy building.
const startTimeout = 3 * time.Minute

// shared is the engine of this test binary.
var shared struct {
	main   bool // Main was called
	once   sync.Once
	engine *embedded.ClickHouse
	err    error
	stop   func()
	log    string // of the engine
}

// Main runs the tests of a package and ends the process; it fails if the engine refused something to an account of Almanac's
// parts. When the process was started as the engine it is that.
func Main(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == embedded.EngineCommand {
		os.Exit(embedded.EngineMain(os.Args[2:]))
	}
	shared.main = true
	code := m.Run()
	if shared.stop != nil {
		for _, line := range denials(shared.log) {
			code = max(code, 1)
			fmt.Fprintln(os.Stderr, "ClickHouse refused: "+line)
		}
		shared.stop()
	}
	os.Exit(code)
}

// FindEngine is the engine to test with. Without one it skips the test, or fails it where one is required.
func FindEngine(t testing.TB) embedded.Engine {
	t.Helper()
	engine, err := embedded.Find(t.Context(), "", nil)
	missing(t, err)
	return engine
}

func missing(t testing.TB, err error) {
	t.Helper()
	switch {
	case errors.Is(err, embedded.ErrNoEngine) && os.Getenv(RequireEnv) == "":
		t.Skipf("no real ClickHouse to test with (set %s=1 to make this a failure): %v", RequireEnv, err)
	case err != nil:
		t.Fatal(err)
	}
}

// clickhouse gives the shared engine, started by the first caller.
func clickhouse(t testing.TB) *embedded.ClickHouse {
	t.Helper()
	if !shared.main {
		t.Fatal("this package needs: func TestMain(m *testing.M) { embeddedtest.Main(m) }")
	}
	shared.once.Do(func() {
		shared.engine, shared.stop, shared.err = start(nil, nil)
		if shared.err == nil {
			shared.log = shared.engine.LogFile()
		}
	})
	missing(t, shared.err)
	return shared.engine
}

// start runs an engine in a directory of its own until stop is called, with the accounts of
// another engine where one is given, and with more.
func start(accountsOf *embedded.ClickHouse, more []access.ClickHouseUser) (engine *embedded.ClickHouse, stop func(), err error) {
	found, err := embedded.Find(context.Background(), "", nil)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "almanac-test-")
	if err != nil {
		return nil, nil, err
	}
	if accountsOf != nil {
		if err := giveAccounts(accountsOf, filepath.Join(dir, "clickhouse")); err != nil {
			return nil, nil, err
		}
	}
	engine, err = embedded.NewClickHouse(embedded.ClickHouseConfig{
		Engine:   found,
		Dir:      filepath.Join(dir, "clickhouse"),
		ColdDir:  filepath.Join(dir, "cold"),
		Further:  []string{databasePrefix + "*"},
		Accounts: more,
		Log: func(level embedded.Level, part, text string) {
			if level >= embedded.LevelWarn {
				fmt.Fprintf(os.Stderr, "%s %s: %s\n", level, part, text)
			}
		},
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = engine.Run(ctx) // WaitReady gives the same error
	}()
	stop = func() {
		cancel()
		<-done
		_ = os.RemoveAll(dir)
	}
	wait, release := context.WithTimeout(ctx, startTimeout)
	defer release()
	if err := engine.WaitReady(wait); err != nil {
		stop()
		return nil, nil, err
	}
	return engine, stop, nil
}
