package registry

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// Proof is what verify proved of a shard, so that it need not examine it again while
// nothing it rests on changed: 500 bytes. It is evidence of nothing else, may be lost, and
// is written over at will.
type Proof struct {
	Frames ProvenFrames `json:"frames"`
	// Rows is nil where the rows were not proven, or changed while they were counted.
	Rows *ProvenRows `json:"rows,omitempty"`
}

// ProvenFrames is what the headers of a shard's frames in SHARDS said, up to LastSeq.
type ProvenFrames struct {
	First  uint64        `json:"first"` // positions
	Last   uint64        `json:"last"`
	Frames uint64        `json:"frames"`
	MinTs  int64         `json:"min_ts"`
	MaxTs  int64         `json:"max_ts"`
	Gaps   []ledger.Span `json:"gaps,omitempty"`
	Before uint64        `json:"before,omitempty"` // rows of the frames before the first
	// LastSeq is the sequence in SHARDS of the last frame that was read.
	LastSeq uint64 `json:"last_seq"`
	// Sums is of the sums of ids (schemas.Placed.ShardIDs) of all its positions.
	Sums uint64 `json:"sums,omitempty"`
}

// ProvenRows is what ClickHouse had of a shard when its rows were proven, and what else
// the proof rests on.
type ProvenRows struct {
	At time.Time `json:"at"`
	// Parts is a digest of the shard's parts in ClickHouse; see tables.DB.Parts.
	Parts string `json:"parts"`
	// Entry and ErasureRecord are revisions, TailSeq the sequence of the last frame in SHARDS.
	Entry         uint64 `json:"entry"`
	ErasureRecord uint64 `json:"erasure_record"`
	TailSeq       uint64 `json:"tail_seq"`

	Stored   uint64 `json:"stored"`
	Distinct uint64 `json:"distinct"`
	IDs      uint64 `json:"ids"`
	Head     uint64 `json:"head"` // in ClickHouse
	MinTs    int64  `json:"min_ts"`
	MaxTs    int64  `json:"max_ts"`

	Routed   uint64 `json:"routed"`
	Expected uint64 `json:"expected"`
	Erased   uint64 `json:"erased,omitempty"`
	Tail     uint64 `json:"tail"`
	ByCount  bool   `json:"by_count,omitempty"`
}

// ReadUpTo is the last frame in SHARDS that the proofs of a topic took in.
type ReadUpTo struct {
	Seq    uint64 `json:"seq"`
	Stored int64  `json:"stored"` // unix ns: with the sequence, its identity
}

// Rev is the revision of the entry as it was read.
func (s *Shard) Rev() uint64 { return s.rev }

// Proofs reads what was proven of a topic. A proof that cannot be read is none.
func (r *Registry) Proofs(ctx context.Context, topic string) (ReadUpTo, map[schemas.ShardRef]Proof, error) {
	var upTo ReadUpTo
	_, err := r.get(ctx, schemas.ReadUpToKey(topic), &upTo)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnreadable) {
		upTo, err = ReadUpTo{}, nil
	}
	if err != nil {
		return upTo, nil, err
	}
	out := map[schemas.ShardRef]Proof{}
	err = r.scan(ctx, schemas.ProofKeys(topic), func(key string, _ uint64, value []byte) error {
		tokens := strings.Split(key, ".")
		if len(tokens) != 4 {
			return nil
		}
		m, errMonth := schemas.ParseMonth(tokens[2])
		id, errShard := schemas.ParseShard(tokens[3])
		var p Proof
		if errMonth == nil && errShard == nil && decode(key, value, &p) == nil {
			out[schemas.ShardRef{Topic: topic, Month: m, ID: id}] = p
		}
		return nil
	})
	return upTo, out, err
}

// SaveProofs keeps proofs, and then how far the topic's frames were read: that comes last,
// so that no proof lacks a frame below it.
func (r *Registry) SaveProofs(ctx context.Context, topic string, proofs map[schemas.ShardRef]Proof, upTo ReadUpTo) error {
	changes := make([]*change, 0, len(proofs)+1)
	for ref, p := range proofs {
		changes = append(changes, &change{key: schemas.ProofKey(ref), any: true, v: &p})
	}
	changes = append(changes, &change{key: schemas.ReadUpToKey(topic), any: true, v: &upTo})
	return r.commitAll(ctx, changes)
}

// DropProofs forgets the proofs of shards that are gone.
func (r *Registry) DropProofs(ctx context.Context, refs []schemas.ShardRef) error {
	for _, ref := range refs {
		if err := r.forget(ctx, schemas.ProofKey(ref)); err != nil {
			return err
		}
	}
	return nil
}

// commitAll writes changes in order, some hundred at a time.
func (r *Registry) commitAll(ctx context.Context, changes []*change) error {
	for len(changes) > 0 {
		n := min(maxCopies, len(changes))
		if err := r.commit(ctx, changes[:n]...); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}
