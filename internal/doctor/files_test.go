package doctor

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/tables"
)

// A statement that reads a private file is refused by an engine that is held to its own files.
func TestFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		status string
	}{
		"refused":  {fmt.Errorf("asking: %w", &tables.Error{Code: 76, Text: "Cannot open file"}), OK},
		"read":     {nil, Warn},
		"no reply": {errors.New("connection refused"), Fail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := check{cfg: Config{Private: "/data/addresses.json"}}
			k.files(c.err)
			if len(k.found) != 1 || k.found[0].Status != c.status || c.status == Warn && !strings.Contains(k.found[0].Do, "Landlock") {
				t.Errorf("%+v, want %s", k.found, c.status)
			}
		})
	}
}
