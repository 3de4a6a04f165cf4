package tables

import "context"

// Size is what a table takes. Its name is that of a topic, or of what is derived from one.
type Size struct {
	Table             string
	Rows, Parts, Disk uint64
}

// Sizes reads what each table of the database takes on disk.
func (db *DB) Sizes(ctx context.Context) (sizes []Size, err error) {
	err = db.each(ctx, "sizes of tables", func(scan scan) error {
		var s Size
		err := scan(&s.Table, &s.Rows, &s.Parts, &s.Disk)
		sizes = append(sizes, s)
		return err
	}, "SELECT table, sum(rows), count(), sum(bytes_on_disk) FROM system.parts WHERE database = ? AND active GROUP BY table ORDER BY table", db.Database)
	return sizes, err
}

// Disk returns the free and all bytes of the fullest disk that tables are on.
func (db *DB) Disk(ctx context.Context) (free, total uint64, err error) {
	err = db.each(ctx, "disks", func(scan scan) error { return scan(&free, &total) },
		"SELECT free_space, total_space FROM system.disks WHERE total_space > 0 ORDER BY free_space / total_space LIMIT 1")
	return free, total, err
}
