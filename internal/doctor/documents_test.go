package doctor

import (
	"strings"
	"testing"

	"github.com/almanac-events/almanac/documents"
)

func TestLateDocuments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s            documents.Status
		status, says string
	}{
		"all archived": {documents.Status{Hot: 3, Cold: 5, Bytes: 1, Limit: 10}, OK, "3 hot, 5 cold, 0 changes"},
		"on its way":   {documents.Status{Hot: 3, Unarchived: 2, OldestUnarchived: 5}, OK, "the oldest for 5 s"},
		"late":         {documents.Status{Hot: 3, Unarchived: 2, OldestUnarchived: 61}, Warn, "the oldest for 61 s"},
		"nearly full":  {documents.Status{Hot: 3, Bytes: 81, Limit: 100}, Warn, "81 % full"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, do, found := lateDocuments(&c.s)
			if status != c.status || !strings.Contains(found, c.says) || (status == Warn) != (do != "") {
				t.Errorf("%s, %q, %q", status, do, found)
			}
		})
	}
}
