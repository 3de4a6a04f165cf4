package seals

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Report says whether the rows of a topic are those that kept seals say.
type Report struct {
	Topic string `json:"topic"`
	// Kept seals were given, and name Shards shards. Rows of them were read.
	Kept   int    `json:"kept"`
	Shards int    `json:"shards"`
	Rows   uint64 `json:"rows"`
	// Since counts seals that were added after the last one that was kept.
	Since int `json:"since"`
	// Replaced names each kept seal whose shard was sealed again, and why. Whether that
	// reason is a good one is for the reader to say.
	Replaced []string `json:"replaced,omitempty"`
	// Problems name what does not hold together.
	Problems []string `json:"problems,omitempty"`
}

func (r *Report) problem(format string, a ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, a...))
}

// MaxKept bounds the seals that Parse takes.
const MaxKept = 1_000_000

// Parse reads seals, one JSON object after the other, as `almanac audit seal -o ndjson` prints
// them.
func Parse(in io.Reader) ([]schemas.Seal, error) {
	var out []schemas.Seal
	d := json.NewDecoder(in)
	d.DisallowUnknownFields()
	for {
		var s schemas.Seal
		switch err := d.Decode(&s); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err == nil && s.Ref().Topic != s.Topic:
			return nil, fmt.Errorf("%w: %w: seal %d of the file is of topic %q and names the shard %s", schemas.ErrRequest, schemas.ErrSeal, len(out)+1, s.Topic, s.Ref())
		case err != nil:
			return nil, fmt.Errorf("%w: %w: seal %d of the file: %w; it must be what `almanac audit seal TOPIC -o ndjson` printed", schemas.ErrRequest, schemas.ErrSeal, len(out)+1, err)
		case len(out) == MaxKept:
			return nil, fmt.Errorf("%w: the file has more than %d seals; take the newest of each topic", schemas.ErrRequest, MaxKept)
		}
		out = append(out, s)
	}
}

// Check compares kept seals with those of the registry, and the rows of every shard that they
// name with the shard's newest seal. There is a report for each topic.
func Check(ctx context.Context, reg *registry.Registry, db *tables.DB, kept []schemas.Seal) ([]Report, error) {
	byTopic := map[string][]schemas.Seal{}
	for _, s := range kept {
		byTopic[s.Topic] = append(byTopic[s.Topic], s)
	}
	var out []Report
	for _, topic := range slices.Sorted(maps.Keys(byTopic)) {
		rep, err := check(ctx, reg, db, topic, byTopic[topic])
		if err != nil {
			return nil, err
		}
		out = append(out, *rep)
	}
	return out, nil
}

func check(ctx context.Context, reg *registry.Registry, db *tables.DB, topic string, kept []schemas.Seal) (*Report, error) {
	own, err := reg.Seals(ctx, topic)
	if err != nil {
		return nil, err
	}
	rep, todo := compare(topic, kept, own)
	t, err := reg.Topic(ctx, topic)
	if errors.Is(err, schemas.ErrUnknownTopic) {
		rep.problem("topic %s is not there any more, so its rows cannot be compared", topic)
		return rep, nil
	}
	if err != nil {
		return nil, err
	}
	for _, s := range todo {
		if s.Version < 1 || s.Version > t.Version {
			rep.problem("%s: seal number %d is over schema version %d, and the topic has version %d", s.Ref(), s.Number, s.Version, t.Version)
			continue
		}
		digest, rows, err := db.RowsDigest(ctx, &t, s.Ref(), s.Version)
		if errors.Is(err, tables.ErrNoTable) {
			digest, rows, err = schemas.EmptyDigest, 0, nil
		}
		if err != nil {
			return nil, err
		}
		rep.Rows += rows
		if digest == s.Digest && rows == s.Rows {
			continue
		}
		// What changes rows says so before, and until it is booked: it is asked after they were read.
		e, err := reg.Shard(ctx, s.Ref())
		if err != nil && !errors.Is(err, registry.ErrNotFound) {
			return nil, err
		}
		record, err := reg.ErasureRecord(ctx, s.Ref())
		if err != nil {
			return nil, err
		}
		now := time.Now()
		if taken, _ := erased(&record); changing(&t, &e, &record, now) || e.NextStep(&t, now) == registry.AnonymiseIt || taken != s.Erased || !e.AnonymisedAt.Equal(s.AnonymisedAt) {
			rep.problem("%s: it is being erased or anonymised, and not sealed again yet; check again in some seconds", s.Ref())
			continue
		}
		rep.problem("%s: its %d rows have the digest %s; seal number %d of %s says %d rows and %s", s.Ref(), rows, digest, s.Number, s.At.Format("2006-01-02T15:04:05Z"), s.Rows, s.Digest)
	}
	return rep, nil
}

// compare finds what of kept seals and the registry's own does not hold together, and the seals
// to compare rows with: the newest of each shard that is kept.
func compare(topic string, kept, own []schemas.Seal) (*Report, []schemas.Seal) {
	rep := &Report{Topic: topic, Kept: len(kept)}
	slices.SortStableFunc(kept, func(a, b schemas.Seal) int { return cmp.Compare(a.Number, b.Number) })
	for i := range kept {
		prev := (*schemas.Seal)(nil)
		if i > 0 {
			prev = &kept[i-1]
		}
		if i == 0 && kept[0].Number > 1 {
			prev = &schemas.Seal{Topic: topic, Number: kept[0].Number - 1, Hash: kept[0].Prev} // what came before was not kept
		}
		if err := kept[i].Follows(prev); err != nil {
			rep.problem("the file: %v", err)
		}
	}
	mine := map[uint64]*schemas.Seal{}
	for i := range own {
		prev := (*schemas.Seal)(nil)
		if i > 0 {
			prev = &own[i-1]
		}
		if err := own[i].Follows(prev); err != nil {
			rep.problem("the registry: %v", err)
		}
		mine[own[i].Number] = &own[i]
		if own[i].Unsealed != "" {
			rep.problem("%s: its rows were changed between seal number %d and the erasures %v, which seal number %d is of: they had the digest %s then", own[i].Ref(), own[i].Replaces, own[i].Erasures, own[i].Number, own[i].Unsealed)
		}
	}
	newest := map[schemas.ShardRef]schemas.Seal{}
	for i := range kept {
		s := &kept[i]
		switch m := mine[s.Number]; {
		case m == nil:
			rep.problem("the registry does not have seal number %d, which was kept", s.Number)
		case m.Hash != s.Hash:
			rep.problem("the registry has another seal number %d than the one that was kept: %s, and not %s", s.Number, m.Hash, s.Hash)
		}
		newest[s.Ref()] = *s
	}
	last := uint64(0)
	if len(kept) > 0 {
		last = kept[len(kept)-1].Number
	}
	for i := range own {
		s := &own[i]
		if s.Number <= last {
			continue
		}
		rep.Since++
		old, known := newest[s.Ref()]
		if !known {
			continue // the shard was closed later
		}
		rep.Replaced = append(rep.Replaced, fmt.Sprintf("%s: seal number %d of %d rows was replaced by number %d of %d rows on %s: %s", s.Ref(), old.Number, old.Rows, s.Number, s.Rows, s.At.Format("2006-01-02T15:04:05Z"), reason(s, &old)))
		newest[s.Ref()] = *s
	}
	var todo []schemas.Seal
	for ref := range newest {
		todo = append(todo, newest[ref])
	}
	slices.SortFunc(todo, func(a, b schemas.Seal) int { return cmp.Compare(a.Number, b.Number) })
	rep.Shards = len(todo)
	return rep, todo
}

// reason says why a seal replaced another.
func reason(s, old *schemas.Seal) string {
	switch s.Why {
	case schemas.SealErased:
		return fmt.Sprintf("%d rows were erased, by %v", s.Erased-min(old.Erased, s.Erased), s.Erasures)
	case schemas.SealAnonymised:
		return fmt.Sprintf("the fields %v were cleared", s.Anonymised)
	case schemas.SealDropped:
		return "retention dropped the shard"
	}
	return s.Why
}
