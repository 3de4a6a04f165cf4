package series

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// catalogue is a topic's list of series as it was at one instant. It does not change, and is safe for
// concurrent use: of its frames' readers only what reads is called.
type catalogue struct {
	series []listed
	frames []*frame.Reader // of the series in their order, for filters
	reach  map[schemas.ShardRef]uint64
}

// listed is one series of a list, and where and when it has points.
type listed struct {
	metric string
	key    Key
	name   []string // as sql.SeriesNames has it
	labels map[string]string
	spans  []span
}

// span is what one row of the list says of a series.
type span struct {
	ref         schemas.ShardRef
	points      []string
	first, last int64 // unix ns
}

// listRow is a row of the list. One without a metric says up to which position its shard is listed.
type listRow struct {
	metric string
	name   []string
	pos    uint64
	span
}

// listColumns are the columns that readListRow reads, after the part's name.
const listColumns = "type, toString(series), service, user_id, unit, toJSONString(labels), toString(pos), toString(month), toString(shard), toJSONString(points), toString(toUnixTimestamp64Nano(first)), toString(toUnixTimestamp64Nano(last))"

func readListRow(topic string, row []string) (r listRow, err error) {
	r = listRow{metric: row[0], name: row[1:6]}
	number := func(text string, bits int) uint64 {
		n, e := strconv.ParseUint(text, 10, bits)
		err = cmp.Or(err, e)
		return n
	}
	instant := func(text string) int64 {
		n, e := strconv.ParseInt(text, 10, 64)
		err = cmp.Or(err, e)
		return n
	}
	r.pos, r.ref = number(row[6], 64), schemas.ShardRef{Topic: topic, Month: schemas.Month(number(row[7], 32)), ID: schemas.Shard(number(row[8], 64))}
	r.first, r.last = instant(row[10]), instant(row[11])
	return r, cmp.Or(err, json.Unmarshal([]byte(row[9]), &r.points))
}

// newCatalogue makes a catalogue of the rows of all parts of a list.
func newCatalogue(parts [][]listRow) (*catalogue, error) {
	c := &catalogue{reach: map[schemas.ShardRef]uint64{}}
	at := map[[2]string]int{}
	for _, rows := range parts {
		for i := range rows {
			r := &rows[i]
			if r.metric == "" {
				c.reach[r.ref] = max(c.reach[r.ref], r.pos)
				continue
			}
			key := [2]string{r.metric, r.name[0]}
			k, ok := at[key]
			if !ok {
				k = len(c.series)
				at[key] = k
				l := listed{metric: r.metric, name: r.name}
				var err error
				if l.key, err = parseKey(r.name[0]); err != nil {
					return nil, err
				}
				if err := json.Unmarshal([]byte(r.name[4]), &l.labels); err != nil {
					return nil, fmt.Errorf("labels of a series are %.200q: %w", r.name[4], err)
				}
				c.series = append(c.series, l)
			}
			c.series[k].spans = append(c.series[k].spans, r.span)
		}
	}
	return c, c.frame()
}

// frame makes frames of the series, which filters can evaluate.
func (c *catalogue) frame() error {
	b := frame.NewBuilder(filterTopic)
	flush := func() error {
		_, payload := b.Encode()
		b.Reset()
		r := &frame.Reader{}
		c.frames = append(c.frames, r)
		return r.Open(payload, filterTopic, filterTopic.Version)
	}
	for i := range c.series {
		l := &c.series[i]
		e := schemas.Event{Type: l.metric, Service: l.name[1], UserID: l.name[2], Attrs: []schemas.Attr{schemas.String(kinds.ColUnit, l.name[3])}}
		for _, k := range slices.Sorted(maps.Keys(l.labels)) {
			e.Attrs = append(e.Attrs, schemas.String(k, l.labels[k]))
		}
		b.Append(&e, 0, schemas.ID{})
		if b.Full() {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if b.Rows() == 0 {
		return nil
	}
	return flush()
}

// find is what findAlone finds, without asking ClickHouse; nil where only ClickHouse can evaluate the filter.
func (c *catalogue) find(s *selection, req *Request) *found {
	f := &found{reach: c.reach}
	gone := s.gone()
	from, since, to := s.from.UnixNano(), s.begins(req).UnixNano(), s.to.UnixNano()
	groups, points, labels, places := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[schemas.ShardRef]bool{}
	at := 0
	for _, r := range c.frames {
		within, judge := s.snap.within.On(r), s.where.On(r)
		for i := range r.Rows() {
			l := &c.series[at+i]
			if l.metric != s.metric && s.metric != "" {
				continue
			}
			in := func(sp *span, after int64) bool { return sp.last > after && sp.first <= to && !gone[sp.ref] }
			if !slices.ContainsFunc(l.spans, func(sp span) bool { return in(&sp, from) }) {
				continue
			}
			switch within.Of(i) {
			case filter.Unsure:
				return nil
			case filter.No:
				continue
			}
			f.all++
			for k := range l.labels {
				labels[k] = true
			}
			switch judge.Of(i) {
			case filter.Unsure:
				return nil
			case filter.No:
				continue
			}
			f.series++
			groups[groupOf(l, req.By)] = true
			if len(f.names) < maxNamesOf(req) {
				f.names = append(f.names, l.name)
			}
			for k := range l.spans {
				sp := &l.spans[k]
				if in(sp, since) {
					places[sp.ref] = true
				}
				if in(sp, from) {
					for _, p := range sp.points {
						points[p] = true
					}
				}
			}
		}
		at += r.Rows()
	}
	f.groups = int64(len(groups))
	f.points, f.labels = slices.Sorted(maps.Keys(points)), slices.Sorted(maps.Keys(labels))
	f.labels = f.labels[:min(len(f.labels), maxLabels)]
	if !s.where.All() && len(places) > 0 && len(places) < maxPlaces {
		f.places = places
	}
	return f
}

// gone are the shards whose rows retention drops, or dropped: frames that name them may still be kept.
func (s *selection) gone() map[schemas.ShardRef]bool {
	gone := map[schemas.ShardRef]bool{}
	for i := range s.snap.Shards {
		gone[s.snap.Shards[i].Ref] = s.snap.Shards[i].Gone
	}
	return gone
}

// keyed is what askAll finds, up to a limit, without asking ClickHouse; false where there is no list, or only ClickHouse
// can evaluate the filter.
func (c *catalogue) keyed(s *selection, limit int64) (list []Keyed, ok bool) {
	if c == nil {
		return nil, false
	}
	gone, from, to := s.gone(), s.from.UnixNano(), s.to.UnixNano()
	at := 0
	for _, r := range c.frames {
		selected := s.where.On(r)
		for i := range r.Rows() {
			l := &c.series[at+i]
			if l.metric != s.metric && s.metric != "" {
				continue
			}
			first, last, points := int64(math.MaxInt64), int64(math.MinInt64), []string{}
			for k := range l.spans {
				sp := &l.spans[k]
				if sp.last <= from || sp.first > to || gone[sp.ref] {
					continue
				}
				first, last = min(first, sp.first), max(last, sp.last)
				for _, p := range sp.points {
					if p != "" && !slices.Contains(points, p) {
						points = append(points, p)
					}
				}
			}
			if first > last {
				continue
			}
			switch selected.Of(i) {
			case filter.Unsure:
				return nil, false
			case filter.No:
				continue
			}
			slices.Sort(points)
			list = append(list, Keyed{Series{
				Metric: l.metric, Service: l.name[1], Tenant: l.name[2], Unit: l.name[3], Labels: l.labels,
				Points: points, First: time.Unix(0, first).UTC(), Last: time.Unix(0, last).UTC(),
			}, l.key})
			if int64(len(list)) >= limit {
				return list, true
			}
		}
		at += r.Rows()
	}
	return list, true
}

// groupOf tells the groups of series apart as findSQL does: by unit and labels.
func groupOf(l *listed, by []string) string {
	values := []string{l.name[3]}
	for _, label := range by {
		values = append(values, l.value(label))
	}
	return fmt.Sprintf("%q", values)
}

// value is that of a label, or of service, user or unit, as labelSQL has it.
func (l *listed) value(label string) string {
	if i := slices.Index([]string{schemas.ColService, schemas.ColUserID, kinds.ColUnit}, label); i >= 0 {
		return l.name[1+i]
	}
	return l.labels[label]
}
