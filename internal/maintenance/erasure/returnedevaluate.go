package erasure

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/query/erased"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// How a record without a row is evaluated:
//
//	a whole one    by users and times    its headers say it, also where the users are pseudonyms
//	               by a filter           its body says it, by the filter
//	               by a redacted filter  where all of its shards are there but for what was erased, and a person asks
//	a stub         by any                where all of its shard is there but for what was erased: it stands for nothing

// evaluatedAtOnce is how many bodies are read before they are evaluated.
const evaluatedAtOnce = 256

// evaluateReturned decides which erasures mean the records of a lane.
func (x *Eraser) evaluateReturned(ctx context.Context, t *schemas.Topic, by map[string]*ledger.Erasure, l *lane, proof *proofs) error {
	var rows []uint64
	for _, g := range l.groups {
		for _, b := range g.records {
			rows = append(rows, b.row)
		}
	}
	there, err := x.cfg.DB.RecordsThere(ctx, t.Name, l.lane, rows)
	if err != nil {
		return fmt.Errorf("erase: %w", err)
	}
	asks := map[string][]*back{} // by erasures with a filter
	for _, g := range l.groups {
		for _, b := range g.records {
			for _, id := range b.may {
				e := by[id]
				switch {
				case there[b.row]:
				case b.stub == nil && e.Where == "":
					b.meant = append(b.meant, id)
				case b.stub == nil && !e.Redacted:
					asks[id] = append(asks[id], b)
				default:
					gone, err := proof.erased(ctx, b)
					if err != nil {
						return err
					}
					if gone {
						b.meant = append(b.meant, id)
					}
				}
			}
		}
	}
	for id, some := range asks {
		for part := range slices.Chunk(some, evaluatedAtOnce) {
			if err := x.evaluateBodies(ctx, t, by[id], l.kind, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// evaluateBodies has records evaluated by the filter of an erasure.
func (x *Eraser) evaluateBodies(ctx context.Context, t *schemas.Topic, e *ledger.Erasure, k *records.Kind, some []*back) error {
	var rows []erased.Row
	var of []*back
	for _, b := range some {
		m, err := streams.DecideAt(ctx, x.js, k.Front, b.at)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // it went meanwhile
		}
		if err != nil {
			return fmt.Errorf("erase: message %d of %s: %w", b.at, k.Front, err)
		}
		row, err := rowOf(t, k, m)
		if err != nil {
			continue // not a record
		}
		rows, of = append(rows, row), append(of, b)
	}
	meant, err := erased.Which(ctx, x.cfg.DB, t, e, rows)
	if err != nil {
		return fmt.Errorf("erase: %w", err)
	}
	for i, is := range meant {
		if is {
			of[i].meant = append(of[i].meant, e.ID)
		}
	}
	return nil
}

// rowOf is a record as the row that it became.
func rowOf(t *schemas.Topic, k *records.Kind, m *streams.Message) (erased.Row, error) {
	e, err := k.Event(t, m)
	if err != nil {
		return erased.Row{}, err
	}
	r, err := k.Parse(m)
	if err != nil {
		return erased.Row{}, err
	}
	return erased.Row{Event: e, Changed: r.Changed, Seq: r.Row}, nil
}

// proofs says of records without a row whether erasures took it, where nothing else can: all shards that it may lie
// in have what their frames brought, but for what erasures took.
type proofs struct {
	x      *Eraser
	topic  *schemas.Topic
	shards []registry.Shard
	adds   map[schemas.Shard]bool
	dead   map[uint64]bool // messages of the front that became dead letters
}

func (p *proofs) erased(ctx context.Context, b *back) (bool, error) {
	if p.adds == nil {
		if err := p.read(ctx); err != nil {
			return false, err
		}
	}
	if p.dead[b.row] {
		return false, nil
	}
	in := 0
	for i := range p.shards {
		s := &p.shards[i]
		if s.Month != schemas.MonthOf(b.changed) || b.stub != nil && (s.Month != b.stub.Month || s.ID != b.stub.Shard) {
			continue
		}
		in++
		adds, err := p.addsUp(ctx, s)
		if err != nil || !adds {
			return false, err
		}
	}
	return in > 0, nil
}

func (p *proofs) read(ctx context.Context) (err error) {
	p.adds, p.dead = map[schemas.Shard]bool{}, map[uint64]bool{}
	if p.shards, err = p.x.cfg.Registry.Shards(ctx, p.topic.Name, 0); err != nil {
		return err
	}
	_, err = streams.Headers(ctx, p.x.js, schemas.StreamShards, schemas.DeadSubject(p.topic.Name), 1, func(m *streams.Message) error {
		p.dead[schemas.SourceOf(m.Header).Seq] = true
		return nil
	})
	return err
}

func (p *proofs) addsUp(ctx context.Context, s *registry.Shard) (bool, error) {
	if adds, known := p.adds[s.ID]; known {
		return adds, nil
	}
	adds := false // so without a last frame, which tells what the shard was brought, and of what retention dropped: that was not erased
	if tail, has, err := p.x.tail(ctx, s); err != nil {
		return false, err
	} else if has && !s.Gone() {
		head, gone, err := p.x.whole(ctx, s, tail)
		if err != nil && !errors.Is(err, ErrUnstored) {
			return false, err
		}
		adds = err == nil && !gone && head == tail.Pos
	}
	p.adds[s.ID] = adds
	return adds, nil
}

// inClickHouse adds those of some keys of a lane of which ClickHouse has rows.
func (x *Eraser) inClickHouse(ctx context.Context, t *schemas.Topic, l *lane, subjects []string, there map[string]bool) error {
	err := l.kind.Newest(ctx, x.cfg.DB, t, l.lane, subjects, func(row records.Row) error {
		there[row.Subject] = true
		return nil
	})
	if err != nil {
		return fmt.Errorf("erase: %w", err)
	}
	return nil
}
