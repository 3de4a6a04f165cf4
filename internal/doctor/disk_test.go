package doctor

import (
	"slices"
	"testing"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Every disk of ClickHouse is looked at, but for the one on which the directory of an `up` is.
func TestLowDisks(t *testing.T) {
	t.Parallel()
	disk := func(name string, free, total uint64) tables.Disk {
		return tables.Disk{Name: name, Free: free << 30, Total: total << 30}
	}
	for _, c := range []struct {
		name   string
		disks  []tables.Disk
		own    bool
		status []string
		first  string
	}{
		{"room", []tables.Disk{disk(schemas.DiskDefault, 500, 1024), disk("cold", 900, 1024)}, false, []string{OK}, "500 GiB free on the disk default"},
		{"low", []tables.Disk{disk(schemas.DiskDefault, 99, 1024)}, false, []string{Warn}, "99 GiB free on the disk default, less than 10 % of its 1 TiB"},
		{"both", []tables.Disk{disk("cold", 50, 1024), disk(schemas.DiskDefault, 99, 1024)}, false, []string{Warn, Warn}, "50 GiB free on the disk cold, less than 10 % of its 1 TiB"},
		{"a small one behind a fuller", []tables.Disk{disk(schemas.DiskDefault, 500, 1024), disk("cold", 1, 2)}, false, []string{Warn}, "1 GiB free on the disk cold, less than 2 GiB"},
		{"of an up, whose directory is looked at", []tables.Disk{disk(schemas.DiskDefault, 1, 1024)}, true, nil, ""},
		{"of an up, cold", []tables.Disk{disk(schemas.DiskDefault, 1, 1024), disk("cold", 9, 100)}, true, []string{Warn}, "9 GiB free on the disk cold, less than 10 % of its 100 GiB"},
		{"an object store", []tables.Disk{{Name: "s3", Free: 1<<64 - 1, Total: 1<<64 - 1}}, false, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := lowDisks(c.disks, c.own)
			var status []string
			for _, f := range found {
				status = append(status, f.Status)
			}
			if !slices.Equal(status, c.status) || len(found) > 0 && (found[0].Found != c.first || (found[0].Do == "") != (found[0].Status == OK)) {
				t.Errorf("%+v", found)
			}
		})
	}
}
