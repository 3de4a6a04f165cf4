package recent

import (
	"context"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// maxParts bounds the parts of keyed requests that a reader keeps between reads, some 100 bytes each. A lane whose parts are beyond
// it is read again for each read that meets a keyed request.
const maxParts = schemas.MaxGiven

// given is what a lane was given of keyed requests, as SHARDS keeps it: read after a checkpoint, so it knows
// all that the checkpoint has passed. What it knows of later ones does no harm: see schemas.Given.Has.
type given struct {
	parts schemas.Given
	at    routedAt
	next  uint64 // sequence of SHARDS to read next
	held  int    // of the cache's parts
}

// routedAt names a checkpoint. What a lane keeps of keyed requests changes with it alone.
type routedAt struct {
	source schemas.Source
	era    uint32
}

// partOf is the part of a keyed request that a frame of EVENTS says it is; nil for none.
func partOf(stream string, h nats.Header, subject string, stored int64) *schemas.GivenPart {
	if stream != schemas.StreamEvents {
		return nil
	}
	part, ok := schemas.PartOf(h)
	if !ok {
		return nil
	}
	month, err := schemas.MonthOfSubject(subject)
	if err != nil {
		return nil
	}
	return &schemas.GivenPart{Month: month, Part: part, At: stored}
}

// unrepeatedParts leaves out the frames that the lane's router will refuse, for it was given the same events of a
// keyed request before. Only where a frame is of one it asks what the lane was given, and once for a checkpoint. The caller
// holds the turn of the frame index's tailer.
func (s *Snapshot) unrepeatedParts(ctx context.Context, t *frameIndex, lane string, frames []Meta) ([]Meta, error) {
	if !slices.ContainsFunc(frames, func(m Meta) bool { return m.part != nil }) {
		return frames, nil
	}
	select {
	case t.cache.evaluating <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-t.cache.evaluating }()
	cp := s.lanes[lane]
	if err := s.x.readGiven(ctx, t, schemas.GivenSubject(s.topic, lane), routedAt{cp.SourceOf(), cp.Era}); err != nil {
		return nil, err
	}
	frames = slices.DeleteFunc(frames, func(m Meta) bool { return m.part != nil && t.given.parts.Has(*m.part) })
	if t.cache.parts.Load() > maxParts {
		t.forgetGiven()
	}
	return frames, nil
}

// readGiven brings what a frame index knows of its lane's parts to a checkpoint that was read before.
func (x *Index) readGiven(ctx context.Context, t *frameIndex, subject string, at routedAt) error {
	if t.given == nil {
		t.given = &given{next: 1}
	} else if t.given.at == at {
		return nil
	}
	g := t.given
	err := streams.Gather(ctx, x.js, schemas.StreamShards, subject, g.next, nil, func(m *streams.Message) (bool, error) {
		g.next = m.Sequence + 1
		_ = g.parts.TakeEncoded(m.Data) // another program's tells nothing; the router reports it
		return true, nil
	})
	if err != nil {
		t.forgetGiven() // what it was handed counts only when all of it came
		return err
	}
	t.cache.parts.Add(int64(g.parts.Len() - g.held))
	g.at, g.held = at, g.parts.Len()
	return nil
}

// forgetGiven forgets what the lane was given.
func (t *frameIndex) forgetGiven() {
	if t.given != nil {
		t.cache.parts.Add(-int64(t.given.held))
		t.given = nil
	}
}
