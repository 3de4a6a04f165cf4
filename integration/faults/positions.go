package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// shardFrames are the frames of a shard as their headers tell.
type shardFrames struct {
	name   string
	upTo   []uint64 // rows up to position i+1
	purged uint64   // positions before the first frame there is
}

// positions checks that every shard counts 1, 2, 3 …, that each position brought to ClickHouse as many rows as its frames
// have, that the last one is there, and that the registry says the same of closed shards.
func (c *Checker) positions(ctx context.Context, v *Finding) error {
	frames := map[uint64]*shardFrames{}
	err := c.each(ctx, "SHARDS", "shards.*.*.*", true, func(m jetstream.Msg) error {
		if m.Headers().Get(intrudedHeader) != "" {
			return nil
		}
		tokens := strings.Split(m.Subject(), ".")
		id, err := strconv.ParseUint(tokens[3], 16, 64)
		if err != nil {
			return err
		}
		f := frames[id]
		if f == nil {
			f = &shardFrames{name: tokens[2] + "." + tokens[3]}
			frames[id] = f
		}
		pos, err1 := strconv.ParseUint(m.Headers().Get("Almanac-Pos"), 10, 64)
		rows, err2 := strconv.ParseUint(m.Headers().Get("Almanac-Rows"), 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		total, err := strconv.ParseUint(m.Headers().Get("Almanac-Shard-Rows"), 10, 64)
		if err != nil {
			return err
		}
		f.take(pos, rows, total, v)
		v.Frames++
		return nil
	})
	if err != nil {
		return err
	}
	v.Shards = len(frames)
	stored := map[uint64]map[uint64]uint64{} // shard, position, rows
	err = c.SQL.Rows(ctx, 3, fmt.Sprintf("SELECT shard, pos, count() FROM %s GROUP BY shard, pos", Topic), func(row []uint64) error {
		if stored[row[0]] == nil {
			stored[row[0]] = map[uint64]uint64{}
		}
		stored[row[0]][row[1]] = row[2]
		return nil
	})
	if err != nil {
		return err
	}
	for id, f := range frames {
		f.compare(stored[id], v)
	}
	for id := range stored {
		if frames[id] == nil {
			v.problem("shard %016x: ClickHouse has rows of it, SHARDS has no frame", id)
		}
	}
	return c.registry(ctx, frames, v)
}

// take adds a frame: its position, its rows, and those of the shard up to and with it.
func (f *shardFrames) take(pos, rows, total uint64, v *Finding) {
	want := uint64(len(f.upTo)) + 1
	switch {
	case pos < want:
		v.problem("shard %s: position %d stands twice", f.name, pos)
		return
	case want == 1 && pos > 1: // the janitor purges what is stored and old, from the beginning
		v.Purged += int(pos - 1)
		f.purged = pos - 1
	case pos > want:
		v.problem("shard %s: positions %d to %d are missing in SHARDS", f.name, want, pos-1)
	}
	for ; want < pos; want++ { // as many rows as the frame after them says
		f.upTo = append(f.upTo, total-rows)
	}
	before := uint64(0)
	if pos > 1 {
		before = f.upTo[pos-2]
	}
	if before+rows != total {
		v.problem("shard %s: position %d brings it to %d rows by its header, to %d by counting", f.name, pos, total, before+rows)
	}
	f.upTo = append(f.upTo, before+rows)
}

// compare walks the positions that rows carry: each has the rows of its frame.
func (f *shardFrames) compare(stored map[uint64]uint64, v *Finding) {
	for pos := range stored {
		if pos == 0 || pos > uint64(len(f.upTo)) {
			v.problem("shard %s: rows of position %d, it has %d", f.name, pos, len(f.upTo))
			return
		}
	}
	before, sum := uint64(0), uint64(0)
	for i, upTo := range f.upTo {
		pos := uint64(i) + 1
		sum += stored[pos]
		if pos < f.purged { // how many rows its frame had is gone with it; the last of these knows the sum
			continue
		}
		if want := upTo - before; sum != want {
			v.problem("shard %s: position %d has %d rows, its frame %d", f.name, pos, sum, want)
		}
		before, sum = upTo, 0
	}
}

// registry compares what the registry says of closed shards.
func (c *Checker) registry(ctx context.Context, frames map[uint64]*shardFrames, v *Finding) error {
	known := map[uint64]bool{}
	err := c.each(ctx, "KV_registry", "$KV.registry."+Topic+".*.*", false, func(m jetstream.Msg) error {
		var e struct {
			Status   string
			Rows     uint64
			SealedAt uint64 `json:"sealed_at"`
		}
		tokens := strings.Split(m.Subject(), ".")
		id, err := strconv.ParseUint(tokens[len(tokens)-1], 16, 64)
		if err != nil || len(m.Data()) == 0 {
			return err
		}
		if err := json.Unmarshal(m.Data(), &e); err != nil {
			return err
		}
		known[id] = true
		f := frames[id]
		switch {
		case e.Status == "active":
		case f == nil:
			v.problem("shard %016x: the registry calls it %s, SHARDS has no frame of it", id, e.Status)
		case e.SealedAt != uint64(len(f.upTo)):
			v.problem("shard %s: sealed at position %d, it has %d", f.name, e.SealedAt, len(f.upTo))
		case e.Status == "closed" && e.Rows != f.upTo[len(f.upTo)-1]:
			v.problem("shard %s: closed with %d rows, its frames have %d", f.name, e.Rows, f.upTo[len(f.upTo)-1])
		}
		return nil
	})
	for id, f := range frames {
		if err == nil && !known[id] {
			v.problem("shard %s: the registry does not know it", f.name)
		}
	}
	return err
}

// each reads a stream from its beginning to its present end.
func (c *Checker) each(ctx context.Context, stream, filter string, headersOnly bool, f func(jetstream.Msg) error) error {
	js, err := jetstream.New(c.NC)
	if err != nil {
		return err
	}
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return err
	}
	cons, err := s.CreateConsumer(ctx, jetstream.ConsumerConfig{
		FilterSubject: filter, AckPolicy: jetstream.AckNonePolicy, HeadersOnly: headersOnly, MemoryStorage: true,
	})
	if err != nil {
		return err
	}
	info, err := cons.Info(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.DeleteConsumer(context.WithoutCancel(ctx), info.Name) }()
	for left := info.NumPending; left > 0; {
		batch, err := cons.Fetch(int(min(left, 500)), jetstream.FetchMaxWait(5*time.Second))
		if err != nil {
			return err
		}
		before := left
		for m := range batch.Messages() {
			left--
			if err := f(m); err != nil {
				return err
			}
			if left == 0 {
				return nil
			}
		}
		if left == before {
			return errors.Join(fmt.Errorf("reading %s: %d messages do not come", filter, left), batch.Error())
		}
	}
	return nil
}
