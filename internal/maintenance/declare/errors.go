package declare

import (
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/internal/registry"
)

// LossError refuses a declaration that makes events go, or be cleared, sooner than they would.
type LossError struct {
	Topic string
	Loss  []Loss
}

// Error says what would go, and nothing of how to agree: each door has its own way.
func (e *LossError) Error() string {
	parts := make([]string, len(e.Loss))
	for i := range e.Loss {
		parts[i] = e.Loss[i].String()
	}
	return fmt.Sprintf("topic %s: %s, now or sooner than they are, and nothing brings that back", e.Topic, strings.Join(parts, " and "))
}

// String says how much a step takes.
func (l *Loss) String() string {
	about := "about "
	if l.Exact {
		about = ""
	}
	what := map[registry.Step]string{registry.DropIt: "dropped", registry.AnonymiseIt: "anonymised"}[l.Step]
	return fmt.Sprintf("%s with %s%s would be %s", counted(uint64(l.Shards), "shard"), about, counted(l.Rows, "event"), what) //nolint:gosec // a length
}

func counted(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
