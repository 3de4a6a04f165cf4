package tables

import (
	"context"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

// ListPart is a part of a topic's list of series. What a part has never changes, and its name
// does not come again while the table lives; Digest, of its files, tells it from one of a table
// that was made again.
type ListPart struct {
	Name, Digest string
	Rows         uint64
	// Bytes are those of its columns, not compressed.
	Bytes uint64
}

// ListParts are the parts that a topic's list of series consists of: none when it was not made yet.
func (db *DB) ListParts(ctx context.Context, topic string) (parts []ListPart, err error) {
	err = db.eachMade(ctx, fmt.Sprintf("parts of the series of topic %q", topic), func(scan scan) error {
		var p ListPart
		err := scan(&p.Name, &p.Digest, &p.Rows, &p.Bytes)
		parts = append(parts, p)
		return err
	}, "SELECT name, hash_of_all_files, rows, data_uncompressed_bytes FROM system.parts WHERE database = ? AND table = ? AND active ORDER BY name",
		db.Database, schemas.DerivedTable(topic, schemas.DerivedSeries))
	return parts, err
}
