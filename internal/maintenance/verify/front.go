package verify

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/internal/fronts/archived"
	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// FrontReport compares the front of a topic with its table: what each document or timer is now.
type FrontReport struct {
	Hot     int `json:"hot"`     // records with their body; timers that are in TIMERS
	Cold    int `json:"cold"`    // stubs; timers that are over and left TIMERS
	Waiting int `json:"waiting"` // records that are not stored yet
	Differ  int `json:"differ"`
	// Erasing differ because an erasure under way takes them: Erasure is the last one met.
	Erasing int    `json:"erasing,omitempty"`
	Erasure string `json:"erasure,omitempty"`

	// Stream is the front, and Noun what is in it: "document".
	Stream string `json:"stream"`
	Noun   string `json:"noun"`
}

// Fronts returns a verifier that compares fronts with their tables too. It holds the last
// record of each document or timer of a topic: some 300 and 700 bytes each.
func (v *Verifier) Fronts() *Verifier {
	with := *v
	with.fronts = true
	return &with
}

// front compares a topic's front with its table.
func (v *Verifier) front(ctx context.Context, t *schemas.Topic, rep *TopicReport) error {
	k := records.Of(t)
	if !v.fronts || k == nil {
		return nil
	}
	state, err := v.topicState(ctx, t)
	if err != nil {
		return err
	}
	last, err := k.ReadLast(ctx, v.js, t)
	if err != nil {
		return err
	}
	rep.Front = &FrontReport{Stream: k.Front, Noun: k.Noun}
	var doubt []string
	note := func(subject string, l records.Last, row *records.Row) {
		rep.Front.count(k, l.Record, row)
		switch k.Compare(state, &l, row) {
		case records.Equal:
		case records.Waiting:
			rep.Front.Waiting++
		default:
			doubt = append(doubt, subject)
		}
	}
	for lane := range t.Lanes {
		err = k.Newest(ctx, v.db, t, lane, nil, func(row records.Row) error {
			note(row.Subject, last[row.Subject], &row)
			delete(last, row.Subject)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for subject, l := range last {
		note(subject, l, nil)
	}
	return v.lookAgain(ctx, t, rep, doubt)
}

// topicState is how far the topic is stored now.
func (v *Verifier) topicState(ctx context.Context, t *schemas.Topic) (*records.TopicState, error) {
	upTo, err := archived.UpTo(ctx, v.js, v.reg, v.db, t)
	return &records.TopicState{Topic: t, UpTo: upTo, Now: time.Now()}, err
}

// compare compares keys once more: they may have changed meanwhile. What was stored since counts too, so all is
// read again, the front first. It says what is wrong with those that differ, and counts those that are on their way.
func (v *Verifier) compare(ctx context.Context, t *schemas.Topic, rep *TopicReport, subjects []string) (map[string]string, error) {
	k := records.Of(t)
	state, err := v.topicState(ctx, t)
	if err != nil {
		return nil, err
	}
	last, err := k.ReadLastOf(ctx, v.js, t, subjects)
	if err != nil {
		return nil, err
	}
	newest := map[string]*records.Row{}
	for lane, some := range byLane(k, subjects) {
		if err := k.Newest(ctx, v.db, t, lane, some, func(row records.Row) error {
			newest[row.Subject] = &row
			return nil
		}); err != nil {
			return nil, err
		}
	}
	// Read last: what retention takes is marked before it goes.
	if state.Shards, err = v.reg.Shards(ctx, t.Name, 0); err != nil {
		return nil, err
	}
	ended, err := v.ended(ctx, t)
	if err != nil {
		return nil, err
	}
	wrong := map[string]string{}
	for _, subject := range subjects {
		l, row := last[subject], newest[subject]
		switch why := k.Compare(state, &l, row); {
		case why == records.Equal:
		case why == records.Waiting:
			rep.Front.Waiting++
		case l.Record != nil && (row == nil || row.Seq < l.Row):
			wrong[subject] = why + mayBeOf(ended, l.Row, l.Changed, l.User, l.Stub != nil)
		default:
			wrong[subject] = why
		}
	}
	return wrong, nil
}

// meant lists those of some keys that an erasure means, by their rows.
func (v *Verifier) meant(ctx context.Context, t *schemas.Topic, e *ledger.Erasure, subjects []string) (out []string, err error) {
	k := records.Of(t)
	cond, params := e.Match("e")
	for lane, some := range byLane(k, subjects) {
		for after := (*records.Meant)(nil); ; {
			meant, err := k.Meant(ctx, v.db, t, lane, some, tables.Condition{SQL: cond, Params: params}, after, maxDiffer)
			if err != nil {
				return nil, err
			}
			for _, m := range meant {
				out = append(out, m.Subject)
			}
			if len(meant) < maxDiffer {
				break
			}
			after = &meant[len(meant)-1]
		}
	}
	return out, nil
}

// byLane sorts keys by the lane of each.
func byLane(k *records.Kind, subjects []string) map[int][]string {
	out := map[int][]string{}
	for _, subject := range subjects {
		token, _ := schemas.SourceLane(k.Front, subject)
		if lane, err := schemas.ParseLane(token); err == nil {
			out[lane] = append(out[lane], subject)
		}
	}
	return out
}

// count counts a key by its last record. One of a kind that leaves whole is over, and left, where it has a row alone.
func (f *FrontReport) count(k *records.Kind, r *records.Record, row *records.Row) {
	switch {
	case r == nil && k.Whole() && row != nil, r != nil && r.Stub != nil && !r.Over:
		f.Cold++
	case r == nil, r.Over && !k.Whole():
	default:
		f.Hot++
	}
}
