package evaluate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// filtered is the rules that count the same events.
type filtered struct {
	where *filter.Expr
	rules []*ruleRun
	hits  []int // of the frame at hand
}

// filter puts a rule to those of the same filter.
func (r *run) filter(rr *ruleRun) {
	text := rr.compiled.Where.String()
	for _, f := range r.where {
		if f.where.String() == text {
			f.rules = append(f.rules, rr)
			return
		}
	}
	r.where = append(r.where, &filtered{where: rr.compiled.Where, rules: []*ruleRun{rr}})
}

// maxFrames bounds the frames that one round reads, so that a run which is far behind is saved meanwhile.
const maxFrames = 5000

// read counts the frames that were routed since, or as many as a round has time for: ClickHouse may have to be asked about each. whole: up to the end.
func (r *run) read(ctx context.Context, began time.Time) (whole bool, err error) {
	if len(r.where) == 0 {
		return true, nil
	}
	erasures, err := r.e.cfg.Registry.Ledger(ctx, r.topic.Name)
	if err != nil {
		return false, err
	}
	if r.known.Seq > 0 {
		if meant(erasures) != r.erasures { // what was counted may be meant
			return false, errStale
		}
		if _, again, err := streams.GivenAgain(ctx, r.e.js, schemas.StreamShards, r.known); err != nil || again {
			if err == nil {
				err = errStale
			}
			return false, err
		}
	}
	r.erasures = meant(erasures)
	left := maxFrames
	var reader frame.Reader
	err = streams.Gather(ctx, r.e.js, schemas.StreamShards, schemas.ShardsFilter(r.topic.Name), r.at, func() int { return left }, func(msg *streams.Message) (bool, error) {
		if err := r.frame(ctx, &reader, erasures, msg); err != nil {
			return false, err
		}
		r.at, r.known = msg.Sequence+1, schemas.Source{Seq: msg.Sequence, Stored: msg.Time.UnixNano()}
		if left--; r.tried == nil && time.Since(began) >= r.e.readTime {
			left = 0
		}
		return left > 0, nil
	})
	return left > 0, err
}

// frame counts the events of a frame.
func (r *run) frame(ctx context.Context, reader *frame.Reader, erasures ledger.Erasures, msg *streams.Message) error {
	p, err := schemas.ParsePlaced(msg.Header)
	if err != nil || p.Cleared != "" {
		return nil //nolint:nilerr // not a frame: verify names what should be one
	}
	if p.Schema > r.topic.Version {
		return errStale
	}
	if reader.Open(msg.Data, &r.topic, p.Schema) != nil {
		return nil // verify says what is wrong with it
	}
	var keep map[schemas.ID]bool
	if cover := erasures.Covering(p.Source(), p.MinTs, p.MaxTs); len(cover) > 0 {
		if cover.Schema() > r.topic.Version {
			return errStale
		}
		cond, params := cover.Keep()
		if keep, err = r.matching(ctx, reader, p.Schema, cond, params); err != nil {
			return err
		}
	}
	accepted := p.SourceTime
	if accepted == 0 {
		accepted = msg.Time.UnixNano()
	}
	for _, f := range r.where {
		if !slices.ContainsFunc(f.rules, func(rr *ruleRun) bool { return r.counts(rr, accepted) }) {
			continue
		}
		if err := r.hits(ctx, reader, p.Schema, f, keep); err != nil {
			return err
		}
		if len(f.hits) == 0 {
			continue
		}
		for _, rr := range f.rules {
			if r.counts(rr, accepted) {
				rr.count(reader, f.hits, accepted)
			}
		}
	}
	return nil
}

// counts reports whether events of a time lie in the window of any instant that is still to be evaluated, or in the one before. A rule of a
// shorter window would have its bound of groups full of what is before it else, and not count the newest.
func (r *run) counts(rr *ruleRun, accepted int64) bool {
	return accepted > r.state.Decided-int64(rr.rule.Span())-int64(decide.Step)
}

// hits finds the events of the open frame that a filter matches. Where the frame does not say it surely, ClickHouse decides.
func (r *run) hits(ctx context.Context, reader *frame.Reader, schema int, f *filtered, keep map[schemas.ID]bool) error {
	f.hits = f.hits[:0]
	where := f.where.On(reader)
	for i := range reader.Rows() {
		switch where.Of(i) {
		case filter.Yes:
			if keep == nil || keep[reader.ID(i)] {
				f.hits = append(f.hits, i)
			}
		case filter.Unsure:
			cond, params := f.where.SQL()
			match, err := r.matching(ctx, reader, schema, cond, params)
			if err != nil {
				return err
			}
			f.hits = f.hits[:0]
			for i := range reader.Rows() {
				if id := reader.ID(i); match[id] && (keep == nil || keep[id]) {
					f.hits = append(f.hits, i)
				}
			}
			return nil
		}
	}
	return nil
}

// matching are the events of the open frame that fulfil a condition, by ClickHouse.
func (r *run) matching(ctx context.Context, reader *frame.Reader, schema int, cond string, params map[string]string) (map[schemas.ID]bool, error) {
	var ids []string
	err := r.e.readStored(ctx, func(ctx context.Context) (err error) {
		ids, err = r.e.cfg.Reader.MatchingIDs(ctx, &r.topic, schema, [][]byte{reader.Raw()}, cond, maps.Clone(params))
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make(map[schemas.ID]bool, len(ids))
	for _, text := range ids {
		id, err := schemas.ParseID(text)
		if err != nil {
			return nil, fmt.Errorf("alerts: ClickHouse's answer: %w", err)
		}
		out[id] = true
	}
	return out, nil
}

// maxValueBytes bounds the value of a group: what is longer is one group with what begins alike.
const maxValueBytes = 256

// count adds events of the open frame to a rule's series.
func (rr *ruleRun) count(reader *frame.Reader, hits []int, accepted int64) {
	if rr.rule.By == "" {
		rr.series.Add("", accepted, uint64(len(hits)))
		return
	}
	column := -1
	if rr.compiled.Column != "" {
		column = reader.ColumnIndex(rr.compiled.Column)
	}
	for _, i := range hits {
		var value []byte
		switch {
		case column >= 0:
			value = reader.Text(column, i)
		case rr.compiled.Column != "": // a field that came after the frame's schema version
			value, _ = reader.Attribute(i, rr.compiled.Column)
		default:
			value, _ = reader.Attribute(i, rr.compiled.Attribute)
		}
		if len(value) > maxValueBytes {
			value = value[:maxValueBytes]
		}
		if len(value) > 0 {
			rr.series.Add(strings.ToValidUTF8(string(value), "\uFFFD"), accepted, 1)
		}
	}
}
