package erasure

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// A front that is restored from a copy from before an erasure has its records again, of which ClickHouse no longer has
// a row and so cannot name them. All up to the fence was stored before a row went: so a record up to there without a
// row may be one, and it is evaluated by itself (returnedevaluate.go). A document of which ClickHouse still has a version
// keeps its last record, and verify names it: repair restores that version in its place.

// taken is what goes of a key of a front: of a document some messages, of a timer a life.
type taken struct {
	subject string
	seqs    []uint64
	life    string
}

// goes are those of a key's messages that go, for an erasure.
func (k *taken) goes(e *ledger.Erasure, ms []*streams.Message) []uint64 {
	if k.life == "" {
		return k.seqs
	}
	var seqs []uint64
	for _, m := range ms {
		if r, err := records.OfFront(e.Front).Parse(m); err == nil && r.Unit == k.life && r.Seq <= e.Fence {
			seqs = append(seqs, m.Sequence)
		}
	}
	return seqs
}

// returned takes out of a front what came back there of what an erasure means, and says how many keys that was of.
func (x *Eraser) returned(ctx context.Context, e *ledger.Erasure, s jetstream.Stream) (keys int, err error) {
	found, err := x.findReturned(ctx, e.Topic, e.Front, ledger.Erasures{*e}, true)
	if err != nil {
		return 0, err
	}
	for _, k := range found[e.ID] {
		if err := x.overwrite(ctx, s, k.subject, func(ms []*streams.Message) []uint64 { return k.goes(e, ms) }); err != nil {
			return keys, fmt.Errorf("erase: %s: %w", k.subject, err)
		}
		keys++
	}
	return keys, nil
}

// redactedAgain takes out of a front what came back there of what a redacted erasure means, as far as that can be told.
func (x *Eraser) redactedAgain(ctx context.Context, e *ledger.Erasure) error {
	keys, front := 0, "the streams"
	if e.Front != "" {
		s, err := streams.Open(ctx, x.js, e.Front)
		if err != nil {
			return fmt.Errorf("erase: %s: %w", e.Front, err)
		}
		if keys, err = x.returned(ctx, e, s); err != nil {
			return err
		}
		front = e.Front
	}
	if keys == 0 {
		return fmt.Errorf("%w: erasure %s was redacted: it is no longer known whom it named, and nothing in %s can be told to be of it", ErrRequest, e.ID, front)
	}
	return nil
}

// findReturned is what came back in a topic's front of what erasures that have ended mean, by their ids. asked says that
// a person asks for it: then also what the filter of a redacted one may have meant.
func (x *Eraser) findReturned(ctx context.Context, topic, front string, all ledger.Erasures, asked bool) (map[string][]taken, error) {
	by := backBy(all, front, asked)
	if len(by) == 0 {
		return nil, nil
	}
	t, err := x.cfg.Registry.Topic(ctx, topic)
	if err != nil {
		return nil, err
	}
	out, proof := map[string][]taken{}, &proofs{x: x, topic: &t}
	for lane := range t.Lanes {
		b, err := x.suspects(ctx, &t, front, lane, by)
		if err != nil {
			return nil, err
		}
		if err := x.evaluateReturned(ctx, &t, by, b, proof); err != nil {
			return nil, err
		}
		if err := x.takeBack(ctx, &t, b, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// backBy are the erasures by whom a front's records are evaluated.
func backBy(all ledger.Erasures, front string, asked bool) map[string]*ledger.Erasure {
	by := map[string]*ledger.Erasure{}
	for i := range all {
		if e := &all[i]; e.Front == front && e.State == ledger.Erased && (asked || !e.Redacted || e.Where == "") {
			by[e.ID] = e
		}
	}
	return by
}

// back is a record that an erasure may mean, by its headers.
type back struct {
	at, row uint64 // the sequence of its message, and that of its row
	changed int64
	user    string
	stub    *schemas.FrontPlace
	may     []string // erasures
	meant   []string // those of may that do mean it
}

// group is what a front has of a document, or of the life of a timer, that erasures may mean.
type group struct {
	subject, key string
	records      []*back
}

// lane is what was found in a lane of a front.
type lane struct {
	lane   int
	kind   *records.Kind
	groups map[string]*group
	last   map[string]uint64 // the last message of each subject of groups
	stays  map[string]bool   // subjects with a record that no erasure may mean
}

// suspects reads the headers of a lane of a front for records that erasures may mean.
func (x *Eraser) suspects(ctx context.Context, t *schemas.Topic, front string, n int, by map[string]*ledger.Erasure) (*lane, error) {
	l := &lane{lane: n, kind: records.OfFront(front), groups: map[string]*group{}, last: map[string]uint64{}, stays: map[string]bool{}}
	_, err := streams.Headers(ctx, x.js, front, t.SourceFilter(front, fmt.Sprint(n)), 1, func(m *streams.Message) error {
		r, err := l.kind.Parse(m)
		if err != nil {
			return nil // not a record
		}
		l.add(&back{at: r.Seq, row: r.Row, changed: r.Changed, user: r.User, stub: r.Stub}, r.Unit, m, by)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("erase: %s: %w", front, err)
	}
	return l, nil
}

func (l *lane) add(b *back, key string, m *streams.Message, by map[string]*ledger.Erasure) {
	for id, e := range by {
		if mayMean(e, b, m.Time.UnixNano()) {
			b.may = append(b.may, id)
		}
	}
	if _, known := l.last[m.Subject]; known || len(b.may) > 0 {
		l.last[m.Subject] = m.Sequence
	}
	if len(b.may) == 0 {
		l.stays[m.Subject] = true
		return
	}
	g := l.groups[key]
	if g == nil {
		g = &group{subject: m.Subject, key: key}
		l.groups[key] = g
	}
	g.records = append(g.records, b)
}

// mayMean reports whether an erasure may mean a record, by its headers. One that was stored after the fence under a
// sequence that was given again is not meant. A stub does not say whose the document was.
func mayMean(e *ledger.Erasure, b *back, stored int64) bool {
	named := *e
	if b.stub != nil {
		named.Users = nil
	}
	if !named.MayMean(b.row, b.changed, b.user) {
		return false
	}
	return b.row != b.at || schemas.Source{Seq: b.at, Stored: stored}.UpTo(e.UpTo()) // else the cleaner put it again
}

// takeBack adds what goes of a lane's groups.
func (x *Eraser) takeBack(ctx context.Context, t *schemas.Topic, l *lane, out map[string][]taken) error {
	var subjects []string
	for _, g := range l.groups {
		if !l.kind.Whole() && g.whole(l) {
			subjects = append(subjects, g.subject)
		}
	}
	slices.Sort(subjects)
	there := map[string]bool{}
	for some := range slices.Chunk(subjects, maxTouched) {
		if err := x.inClickHouse(ctx, t, l, some, there); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(l.groups)) {
		for id, k := range l.groups[key].taken(l, there[l.groups[key].subject]) {
			out[id] = append(out[id], *k)
		}
	}
	return nil
}

// whole reports whether all that there is of a document is meant.
func (g *group) whole(l *lane) bool {
	return !l.stays[g.subject] && !slices.ContainsFunc(g.records, func(b *back) bool { return len(b.meant) == 0 })
}

// taken is what goes of a group, by the ids of erasures. The last record of a document goes only with all others, and
// where ClickHouse has nothing of it: an old state must not come up again. A life goes whole.
func (g *group) taken(l *lane, there bool) map[string]*taken {
	out := map[string]*taken{}
	for _, b := range g.records {
		if !l.kind.Whole() && b.at == l.last[g.subject] && (there || !g.whole(l)) {
			continue
		}
		for _, id := range b.meant {
			k := out[id]
			if k == nil {
				k = &taken{subject: g.subject}
				out[id] = k
			}
			if l.kind.Whole() {
				k.life = g.key
			} else {
				k.seqs = append(k.seqs, b.at)
			}
		}
	}
	return out
}

// behindFronts adds to behind the erasures that have ended and whose records are in their fronts again.
func (x *Eraser) behindFronts(ctx context.Context, all map[string]ledger.Erasures, behind map[string][]string) error {
	for topic, l := range all {
		ended := slices.DeleteFunc(slices.Clone(l), func(e ledger.Erasure) bool { return slices.Contains(behind[topic], e.ID) })
		for _, front := range records.Fronts() {
			found, err := x.findReturned(ctx, topic, front, ended, false)
			if err != nil {
				return err
			}
			behind[topic] = append(behind[topic], slices.Sorted(maps.Keys(found))...)
		}
	}
	return nil
}
