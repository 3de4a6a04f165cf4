package repair

import (
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

// foreign are the shards that no router made: the registry does not know them, nothing
// else of Almanac's names them, and there is no room for them in what the checkpoints say
// was routed. A client published frames under a subject of SHARDS, or rows were inserted
// by hand. To adopt one would make its rows, and those that its headers speak of, the
// topic's.
//
// Where the registry lost more than an entry, a lane has no checkpoint, or SHARDS lost its
// end, that cannot be told, and what is there is taken for the topic's own.
func (t *found) foreign() []schemas.Shard {
	var unknown []schemas.Shard
	var routed, inShards uint64
	kept := int64(0) // rows that no checkpoint counts
	for _, cp := range t.lanes {
		routed += cp.Rows
	}
	for id, ref := range t.where {
		e, known := t.entries[id]
		if t.lane[id] != schemas.NoLane && known {
			if _, ok := t.lanes[fmt.Sprint(t.lane[id])]; !ok {
				return nil
			}
		}
		if known && t.counts[id].Head > t.tail(id) && !e.Gone() && len(t.erasureRecords[id].Purged) == 0 {
			return nil
		}
		if _, month := t.heads[ref.Month]; !known && (!month || t.lost) {
			return nil
		}
		inShards += t.rowsOf(id)
		kept += e.KeptRows()
		if !known && !t.named(id, ref) {
			unknown = append(unknown, id)
		}
	}
	if int64(inShards) <= int64(routed)+kept {
		return nil
	}
	return unknown
}

// rowsOf is how many rows were ever routed to a shard, at least.
func (t *found) rowsOf(id schemas.Shard) uint64 {
	e, record := t.entries[id], t.erasureRecords[id]
	gone, _ := record.GoneUpTo(^uint64(0))
	rows := max(t.counts[id].Rows+gone, e.DroppedRows)
	if c := t.chains[id]; len(c) > 0 {
		rows = max(rows, c.last().shardRows)
	}
	return rows
}

// named reports whether a head entry, a checkpoint or an erasure names a shard.
func (t *found) named(id schemas.Shard, ref schemas.ShardRef) bool {
	h := t.heads[ref.Month]
	for _, active := range h.Active {
		if active == id {
			return true
		}
	}
	if _, ok := h.Retired[id]; ok {
		return true
	}
	for _, cp := range t.lanes {
		if _, ok := cp.Tails[id]; ok {
			return true
		}
	}
	_, erased := t.erasureRecords[id]
	return erased
}

// leaveForeign takes foreign shards out of what is planned for, and says what they are.
func (t *found) leaveForeign(p *Plan) {
	for _, id := range t.foreign() {
		ref := t.where[id]
		p.note("%s is left alone: no router made it, for all that was routed is in other shards. `verify` goes on naming it, and Almanac does not take it out: nothing else may have its events. If they are not needed, delete them with the program nats of NATS, which Almanac does not ship: `nats stream purge %s --subject=%s`, and in ClickHouse ALTER TABLE %s DROP PARTITION ID '%s'",
			ref, schemas.StreamShards, ref.Subject(), t.topic.Name, schemas.PartitionID(ref.Month, id))
		delete(t.where, id)
		delete(t.chains, id)
		delete(t.counts, id)
		t.lane[id] = schemas.NoLane
	}
}
