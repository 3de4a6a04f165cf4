package tables

import (
	"context"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Place is what a shard has on a disk of its table's storage policy.
type Place struct {
	Volume string `json:"volume"`
	Disk   string `json:"disk"`
	Bytes  uint64 `json:"bytes"`
}

// Storage is the storage policies of the server, and which of them its tables have.
type Storage struct {
	volumes map[string][]volume // by policy, in order
	tables  map[string]string   // policy by table
}

type volume struct {
	name  string
	disks []string
}

// Storage reads the policies.
func (db *DB) Storage(ctx context.Context) (s Storage, err error) {
	s = Storage{map[string][]volume{}, map[string]string{}}
	err = db.each(ctx, "storage policies", func(scan scan) error {
		var policy string
		var v volume
		err := scan(&policy, &v.name, &v.disks)
		s.volumes[policy] = append(s.volumes[policy], v)
		return err
	}, "SELECT policy_name, volume_name, disks FROM system.storage_policies ORDER BY policy_name, volume_priority")
	if err != nil {
		return s, err
	}
	return s, db.each(ctx, "tables of "+db.Database, func(scan scan) error {
		var name, policy string
		err := scan(&name, &policy)
		s.tables[name] = policy
		return err
	}, "SELECT name, storage_policy FROM system.tables WHERE database = ? AND engine LIKE '%MergeTree'", db.Database)
}

// Near is the first volume of a table, where what is inserted goes; empty: there is no such table.
func (s Storage) Near(table string) string {
	if v := s.volumes[s.tables[table]]; len(v) > 0 {
		return v[0].name
	}
	return ""
}

// Knows reports whether the server has a policy.
func (s Storage) Knows(policy string) bool { return len(s.volumes[policy]) > 0 }

// HasCold reports whether a table's policy has the cold volume.
func (s Storage) HasCold(table string) bool { return s.offers(s.tables[table]) }

// CanCold reports why a topic's closed shards cannot move: neither its table's policy nor the one that it would take
// has the cold volume.
func (s Storage) CanCold(topic string) error {
	if s.HasCold(topic) || s.offers(schemas.StoragePolicy) {
		return nil
	}
	had := "no table yet"
	if p := s.tables[topic]; p != "" {
		had = "the storage policy " + p
	}
	return fmt.Errorf("%w: topic %q has cold_after_days; it has %s, and ClickHouse no policy %q with a volume %q. Give `almanac up` a directory on another disk by cold_dir, or an own ClickHouse that policy (docs/operations.md, Cold shards); or take the option away with --cold-after-days 0",
		ErrNoCold, topic, had, schemas.StoragePolicy, schemas.VolumeCold)
}

func (s Storage) offers(policy string) bool {
	return slices.ContainsFunc(s.volumes[policy], func(v volume) bool { return v.name == schemas.VolumeCold })
}

// volumeOf is the volume of a table that has a disk.
func (s Storage) volumeOf(table, disk string) string {
	for _, v := range s.volumes[s.tables[table]] {
		if slices.Contains(v.disks, disk) {
			return v.name
		}
	}
	return ""
}

// Places are where the shards of a topic are: none when its table was not made yet.
func (db *DB) Places(ctx context.Context, s Storage, topic string) (map[schemas.Shard][]Place, error) {
	out := map[schemas.Shard][]Place{}
	return out, db.each(ctx, fmt.Sprintf("places of topic %q", topic), func(scan scan) error {
		var partition string
		var p Place
		err := scan(&partition, &p.Disk, &p.Bytes)
		if ref, ok := shardOfPartition(topic, partition); ok {
			p.Volume = s.volumeOf(topic, p.Disk)
			out[ref.ID] = append(out[ref.ID], p)
		}
		return err
	}, "SELECT partition_id, disk_name, sum(bytes_on_disk) FROM system.parts WHERE database = ? AND table = ? AND active GROUP BY partition_id, disk_name ORDER BY partition_id, disk_name",
		db.Database, topic)
}

// UseCold gives a table the policy with the cold volume, unless its own has one.
func (db *DB) UseCold(ctx context.Context, s Storage, table string) error {
	if s.HasCold(table) {
		return nil
	}
	if err := s.CanCold(table); err != nil {
		return err
	}
	return db.usePolicy(ctx, table, schemas.StoragePolicy)
}

// SamePolicy gives a table the policy of another one.
func (db *DB) SamePolicy(ctx context.Context, s Storage, table, as string) error {
	if s.tables[as] == "" || s.tables[table] == s.tables[as] {
		return nil
	}
	return db.usePolicy(ctx, table, s.tables[as])
}

func (db *DB) usePolicy(ctx context.Context, table, policy string) error {
	return db.DDL(ctx, fmt.Sprintf("giving table %s the storage policy %s", table, policy),
		fmt.Sprintf("ALTER TABLE %s MODIFY SETTING storage_policy = %s", sql.QuotedTable(db.Database, table), sql.QuoteText(policy)))
}

// MoveShard moves a shard's partition to a volume, and returns when it is there. ClickHouse copies each part, and then
// has the copy take its place: a reader meets one of them. The topic of ref names the table.
func (db *DB) MoveShard(ctx context.Context, ref schemas.ShardRef, volume string) error {
	return db.DDL(ctx, fmt.Sprintf("moving %s to the volume %s", ref, volume),
		fmt.Sprintf("ALTER TABLE %s MOVE PARTITION ID '%s' TO VOLUME %s", sql.QuotedTable(db.Database, ref.Topic), ref.PartitionID(), sql.QuoteText(volume)))
}
