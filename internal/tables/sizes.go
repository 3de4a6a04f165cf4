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

// Disk is one that the server has.
type Disk struct {
	Name        string
	Free, Total uint64 // bytes
}

// unbounded is more bytes than a disk has: a store of objects says that it has as many as can be counted.
const unbounded = 1 << 62

// Bounded reports whether a disk can become full.
func (d *Disk) Bounded() bool { return d.Total < unbounded }

// Disks returns those that tables may be on, the fullest one first.
func (db *DB) Disks(ctx context.Context) (all []Disk, err error) {
	err = db.each(ctx, "disks", func(scan scan) error {
		var d Disk
		err := scan(&d.Name, &d.Free, &d.Total)
		all = append(all, d)
		return err
	}, "SELECT name, free_space, total_space FROM system.disks WHERE total_space > 0 ORDER BY free_space / total_space, name")
	return all, err
}
