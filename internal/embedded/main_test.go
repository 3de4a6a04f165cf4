package embedded_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// parentEnv makes this test binary a parent to be killed: it runs an engine in the directory named.
const parentEnv = "ALMANAC_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(secretEnv) == "" {
		if err := os.Setenv(secretEnv, "key-"+rand.Text()); err != nil {
			panic(err)
		}
	}
	if dir := os.Getenv(parentEnv); dir != "" && len(os.Args) == 1 {
		fmt.Println("failed:", parent(dir))
		os.Exit(1)
	}
	embeddedtest.Main(m)
}

// parent runs an engine until this process is killed, and says the engine's pid once it is ready.
func parent(dir string) error {
	ctx := context.Background()
	engine, err := embedded.Find(ctx, "", nil)
	if err != nil {
		return err
	}
	c, err := embedded.NewClickHouse(embedded.ClickHouseConfig{Engine: engine, Dir: dir})
	if err != nil {
		return err
	}
	go func() {
		if c.WaitReady(ctx) == nil {
			fmt.Println("ready:", c.PID())
		}
	}()
	return c.Run(ctx)
}
