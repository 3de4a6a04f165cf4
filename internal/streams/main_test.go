package streams

import (
	"context"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// maxWait is how long anything may take on a busy machine.
const maxWait = 2 * time.Minute

// timeout bounds a test that waits.
func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	t.Cleanup(cancel)
	return ctx
}
