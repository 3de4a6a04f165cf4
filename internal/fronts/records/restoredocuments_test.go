package records

import (
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// What was written on an older copy of DOCS becomes the version after the newest that is stored.
func TestAgainOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		young  document.Record
		newest *version
		want   document.Record
	}{
		"an update":                      {document.Record{Op: schemas.OpUpdated, Version: 4, Created: 1}, &version{Op: schemas.OpUpdated, Version: 9, Created: 1}, document.Record{Op: schemas.OpUpdated, Version: 10, Created: 1}},
		"an id that was taken since":     {document.Record{Op: schemas.OpStored, Version: 1, Created: 7}, &version{Op: schemas.OpStored, Version: 1, Created: 3}, document.Record{Op: schemas.OpUpdated, Version: 2, Created: 3}},
		"one that was removed since":     {document.Record{Op: schemas.OpUpdated, Version: 2, Created: 1}, &version{Op: schemas.OpRemoved, Version: 5, Created: 1}, document.Record{Op: schemas.OpUpdated, Version: 6, Created: 1}},
		"a removal":                      {document.Record{Op: schemas.OpRemoved, Version: 3, Created: 1}, &version{Op: schemas.OpUpdated, Version: 8, Created: 1}, document.Record{Op: schemas.OpRemoved, Version: 9, Created: 1}},
		"one that ClickHouse never had":  {document.Record{Op: schemas.OpStored, Version: 1, Created: 7}, nil, document.Record{Op: schemas.OpStored, Version: 1, Created: 7}},
		"one that is newer than its row": {document.Record{Op: schemas.OpUpdated, Version: 6, Created: 1}, &version{Op: schemas.OpUpdated, Version: 3, Created: 1}, document.Record{Op: schemas.OpUpdated, Version: 6, Created: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := againOf(c.young, c.newest); got.Op != c.want.Op || got.Version != c.want.Version || got.Created != c.want.Created {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
