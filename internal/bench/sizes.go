package bench

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// sizes reads what an event takes on the wire and on disk.
func sizes(ctx context.Context, cfg *Config, res *Result) error {
	js, err := jetstream.New(cfg.NATS)
	if err != nil {
		return err
	}
	s, err := js.Stream(ctx, schemas.StreamShards)
	if err != nil {
		return fmt.Errorf("bench: %s: %w", schemas.StreamShards, err)
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(schemas.SubjectsShards))
	if err != nil {
		return fmt.Errorf("bench: %s: %w", schemas.StreamShards, err)
	}
	res.StreamDisk = float64(info.State.Bytes) / float64(cfg.Events)
	for _, n := range info.State.Subjects {
		res.Frames += int(n)
	}
	var wire uint64
	for i := range cfg.Topics {
		entries, err := cfg.Registry.Shards(ctx, cfg.topicName(i), 0)
		if err != nil {
			return err
		}
		for _, e := range entries {
			last, err := s.GetLastMsgForSubject(ctx, e.Ref().Subject())
			if err != nil {
				return fmt.Errorf("bench: last frame of %s: %w", e.Name(), err)
			}
			p, err := schemas.ParsePlaced(last.Header)
			if err != nil {
				return err
			}
			wire += p.ShardBytes
		}
	}
	res.WireBytes = float64(wire) / float64(cfg.Events)
	var disk uint64
	q := "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = ? AND startsWith(table, ?)"
	if err := cfg.DB.Conn().QueryRow(ctx, q, cfg.DB.Database, cfg.prefix).Scan(&disk); err != nil {
		return fmt.Errorf("bench: bytes on disk: %w", err)
	}
	res.TableDisk = float64(disk) / float64(cfg.Events)
	return nil
}
