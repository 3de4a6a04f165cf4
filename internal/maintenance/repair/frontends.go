package repair

import (
	"context"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// A front that lost its end takes records under sequences that were routed before, until it has gone on above them:
// any process that has it open may write one. Once it has, the routers go on too, and their checkpoints no longer
// say where they had been. So a blank, the mark, says it from the moment at which the front is above it until
// those young records are put again. A repair that comes after one that was killed reads it there.

// routedEnds are up to which messages a front was routed: one by the checkpoints, and one by each mark.
type routedEnds []schemas.Source

// max is the highest end, zero for none.
func (es routedEnds) max() (end schemas.Source) {
	for _, e := range es {
		if e.Seq >= end.Seq {
			end = e
		}
	}
	return end
}

// young reports whether a message has a sequence that was routed before it was stored.
func (es routedEnds) young(seq uint64, stored int64) bool {
	for _, e := range es {
		if e.Stored != 0 && seq <= e.Seq && stored > e.Stored {
			return true
		}
	}
	return false
}

// names is what a mark says: each of the ends, since a repair that comes later finds other checkpoints.
func (es routedEnds) names() string {
	var names []string
	for _, e := range es {
		if name := e.Name(); e.Seq > 0 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// endsNamed reads what a mark says.
func endsNamed(names string) (es routedEnds) {
	for _, name := range strings.Fields(names) {
		if end, err := schemas.ParseName(name); err == nil {
			es = append(es, end)
		}
	}
	return es
}

// routedEnds reads them for any topic, since the topics of a front share its sequences, and the front's last sequence.
func (r *Repairer) routedEnds(ctx context.Context, front string) (ends routedEnds, last uint64, err error) {
	info, err := streams.Info(ctx, r.js, front)
	if err != nil {
		return nil, 0, err
	}
	var end schemas.Source
	if err := streams.EachCheckpoint(ctx, r.js, schemas.SubjectsRouted, func(cp *streams.Routed) error {
		if cp.Front == front && cp.Source >= end.Seq {
			end = schemas.Source{Seq: cp.Source, Stored: cp.Stored}
		}
		return nil
	}); err != nil {
		return nil, 0, err
	}
	marks, err := r.routedUpTo(ctx, front)
	return append(marks, end), info.State.LastSeq, err
}

// routedUpTo are the ends that marks name.
func (r *Repairer) routedUpTo(ctx context.Context, front string) (ends routedEnds, err error) {
	_, err = streams.Headers(ctx, r.js, front, schemas.FrontBlankSubject(front, schemas.AnyTopic), 1, func(m *streams.Message) error {
		ends = append(ends, endsNamed(m.Header.Get(schemas.HeaderBlank))...)
		return nil
	})
	return ends, err
}
