package records

import (
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// clearTimer: a timer whose present life is meant is cancelled first, which is a record of its own that names no user: a
// dispatcher can no longer call it, and nothing that stays needs the spec. Of one whose earlier lives are meant, those go.
func clearTimer(_ *schemas.Topic, last *Last, m *Meant, fence uint64) Clearing {
	life, r := m.of.(*meantLife).Life, last.Timer()
	switch {
	case r == nil:
		return Clearing{}
	case cancels(r, life):
		return Clearing{Put: func(now int64) (fronts.Record, error) {
			next, _, err := timer.Delete(r, timer.AnyRevision, now)
			if err != nil {
				return fronts.Record{}, err
			}
			next.User = ""
			return timerRecord(&next, last.At)
		}}
	}
	return Clearing{Goes: func(ms []*streams.Message) (seqs []uint64) {
		var records []timer.Record
		for _, m := range ms {
			if r, err := timer.Parse(m.Subject, m.Sequence, m.Header, nil); err == nil {
				records = append(records, r)
			}
		}
		upTo := clearsTimer(records, fence, life)
		for _, m := range ms {
			if m.Sequence <= upTo {
				seqs = append(seqs, m.Sequence)
			}
		}
		return seqs
	}}
}

// cancels reports whether a timer must be cancelled first: its present life is meant and not over.
func cancels(last *timer.Record, life string) bool {
	return last.Life.String() == life && !last.State().Over()
}

// clearsTimer returns up to which sequence, with it, the records of a timer go; 0: none. The present life goes
// whole if it is meant, and is over then. Otherwise what came before it goes.
func clearsTimer(records []timer.Record, fence uint64, life string) (upTo uint64) {
	for i := range records {
		present := records[len(records)-1].Life
		if records[i].Seq > fence || records[i].Life == present && present.String() != life {
			break
		}
		upTo = records[i].Seq
	}
	return upTo
}

// timerRecord is a timer's next record, with what its front has of the timer expected.
func timerRecord(next *timer.Record, expect uint64) (fronts.Record, error) {
	h, data, err := next.Message()
	return fronts.Record{Subject: next.Key.Subject(), Header: h, Data: data, Expect: expect, For: fronts.End}, err
}
