package query

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// TailRequest asks for a topic's events as they are routed.
type TailRequest struct {
	Topic, Where string
	// From is a position that Tail gave, to go on behind it; empty begins with
	// what is routed from now on.
	From string
}

// Tail calls f with each event, in the order of the stream, until ctx ends or f
// returns an error. It follows SHARDS, where every event stands once. pos is the
// place to resume behind; it stays good for the replay window.
func (r *Reader) Tail(ctx context.Context, req TailRequest, f func(pos string, event json.RawMessage) error) error {
	topic, err := r.topic(ctx, req.Topic)
	if err != nil {
		return err
	}
	where, err := filter.Parse(req.Where, &topic)
	if err != nil {
		return joinRequest(err)
	}
	at, err := r.tailStart(ctx, req.From)
	if err != nil {
		return err
	}
	cons, err := r.shards.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects:    []string{schemas.ShardsFilter(topic.Name)},
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       at.seq,
		InactiveThreshold: tailIdle,
	})
	if err != nil {
		return fmt.Errorf("query: tail of %q: %w", topic.Name, err)
	}
	iter, err := cons.Messages(jetstream.PullMaxBytes(tailPullBytes))
	if err != nil {
		return fmt.Errorf("query: tail of %q: %w", topic.Name, err)
	}
	defer iter.Stop()
	defer context.AfterFunc(ctx, iter.Stop)()
	for {
		msg, err := iter.Next()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("query: tail of %q: %w", topic.Name, err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return fmt.Errorf("query: tail of %q: %w", topic.Name, err)
		}
		skip := 0
		if meta.Sequence.Stream == at.seq {
			skip = at.row
		}
		if topic, err = r.tailFrame(ctx, topic, where, msg, meta.Sequence.Stream, skip, f); err != nil {
			return err
		}
	}
}

// tailPullBytes bounds what a tail holds ahead of its reader.
const tailPullBytes = 8 << 20

// tailIdle is how long the server keeps the consumer of a tail that died.
const tailIdle = 30 * time.Second

// tailStart is where a tail begins: a position, or the end as it stands, by its
// sequence, so that a consumer that is made anew before the first frame came
// begins at the same place.
func (r *Reader) tailStart(ctx context.Context, from string) (tailPos, error) {
	if from != "" {
		at, err := parseTailPos(from)
		if err != nil {
			return at, joinRequest(err)
		}
		return at, nil
	}
	info, err := r.shards.Info(ctx)
	if err != nil {
		return tailPos{}, fmt.Errorf("query: %s: %w", schemas.StreamShards, err)
	}
	return tailPos{seq: info.State.LastSeq + 1}, nil
}

// tailFrame gives f the events of one frame that pass the filter, from behind
// row skip on. It returns the topic, read again when the frame is of a newer
// schema.
func (r *Reader) tailFrame(ctx context.Context, topic schemas.Topic, where *filter.Expr, msg jetstream.Msg, seq uint64, skip int, f func(string, json.RawMessage) error) (schemas.Topic, error) {
	p, err := schemas.ParsePlaced(msg.Headers())
	_, _, shard, err2 := schemas.ParseShardSubject(msg.Subject())
	if err != nil || err2 != nil || p.Cleared != "" {
		return topic, nil // no frame, so no event; verify names what should be one
	}
	if p.Schema > topic.Version {
		if topic, err = r.topic(ctx, topic.Name); err != nil {
			return topic, err
		}
	}
	var reader schemas.FrameReader
	if err := reader.Open(msg.Data(), &topic, p.Schema); err != nil {
		return topic, fmt.Errorf("query: %s message %d: %w", msg.Subject(), seq, err)
	}
	cond, params := where.SQL()
	settings := maps.Clone(readSettings)
	settings["max_threads"] = "1" // so that rowNumberInAllBlocks counts the frame's own rows
	source := freshSource(&topic, p.Schema, shard, p.Pos, "rowNumberInAllBlocks() + 1 AS _row")
	body, err := r.db.Select(ctx, &tables.Select{
		SQL:    fmt.Sprintf("SELECT %s, _row FROM (%s) WHERE _row > %d AND (%s) ORDER BY _row FORMAT JSONEachRow", columns(&topic), source, skip, cond),
		Params: params, Settings: settings, Fresh: [][]byte{reader.Raw()}, FreshStructure: topic.FrameStructure(p.Schema),
	})
	if err != nil {
		return topic, err
	}
	defer func() { _ = body.Close() }()
	return topic, scanLines(body, func(line []byte) error {
		// _row is the last column: cut it off again.
		i := strings.LastIndex(string(line), `,"_row":`)
		if i < 0 {
			return fmt.Errorf("query: ClickHouse's answer has no _row: %.200s", line)
		}
		row, err := strconv.Atoi(strings.Trim(string(line[i+len(`,"_row":`):]), `"}`))
		if err != nil {
			return fmt.Errorf("query: ClickHouse's answer has the row %q", line[i:])
		}
		return f(tailPos{seq, row}.String(), json.RawMessage(string(line[:i])+"}"))
	})
}

// tailPos is a place in SHARDS: a message and a row of its frame, from 1.
type tailPos struct {
	seq uint64
	row int
}

func (p tailPos) String() string { return fmt.Sprintf("%d.%d", p.seq, p.row) }

func parseTailPos(s string) (tailPos, error) {
	a, b, _ := strings.Cut(s, ".")
	seq, err := strconv.ParseUint(a, 10, 64)
	row, err2 := strconv.Atoi(b)
	if err != nil || err2 != nil || seq == 0 || row < 0 {
		return tailPos{}, fmt.Errorf("%w: %q; give the position of an event that tail printed, such as 4711.12", ErrPosition, s)
	}
	return tailPos{seq, row}, nil
}
