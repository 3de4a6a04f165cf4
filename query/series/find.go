package series

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// found is what a read would touch, as the list of series says.
type found struct {
	all    int64 // series of the metric in the range, within the row limit
	series int64 // of those, the ones that the filter selects
	groups int64 // of those
	points []string
	labels []string                  // of all
	names  [][]string                // the selected ones, as sql.SeriesNames has them, where they are few enough
	places map[schemas.ShardRef]bool // the shards with points of the selected ones that the read begins at; nil: not known
	reach  map[schemas.ShardRef]uint64
}

const (
	// fewSeries bounds the series that a read names by their keys: some 40 bytes each of a
	// statement. Then it reads no other series' rows.
	fewSeries = 200
	// maxNames bounds the names that come with what was found: a panel of a thousand hosts has
	// them. Those of more series are read after their points, by a statement of some 20 ms.
	maxNames = 2000
	// maxPlaces bounds the shards that are told of each series, and of the selected ones. Beyond,
	// a read may look at all.
	maxPlaces = 64
	// maxLabels bounds the labels that are told.
	maxLabels = 1000
)

// find fills the snapshot and reads what the selected series are: of the list alone where that may
// have them all. Where it had them all the last time, it is asked while the snapshot is filled.
func (r *Reader) find(ctx context.Context, s *selection, req *Request) (*found, error) {
	ofList := s.findSQL(req, s.listedAlone(req), true) // made before the snapshot is filled
	ask := func() listAnswer { return r.askList(ctx, s, ofList) }
	early := r.whole.was(req.Topic) && !s.snap.erasing()
	if early {
		ask = begin(ask)
	}
	err := s.snap.Fill(ctx, r.db)
	var list listAnswer
	if early || err == nil && s.snap.simple() {
		list = ask() // also after an error: it has ended then
	}
	if err != nil {
		return nil, err
	}
	f, err := r.findAlone(ctx, s, req, list, ofList)
	if err != nil {
		return nil, err
	}
	if f != nil {
		s.snap.Listed(f.reach)
	}
	whole := f != nil && s.snap.complete()
	r.whole.note(req.Topic, whole)
	if !whole {
		if f, err = r.findIn(ctx, s.findSQL(req, s.listed(), false), s); err != nil {
			return nil, err
		}
	}
	s.selected(f, req)
	return f, nil
}

// listAnswer is what the list says: all that is in it, where that is kept, or what is found in it.
type listAnswer struct {
	all   *catalogue
	found *found
}

// begin begins a question, and returns what waits for its answer.
func begin(ask func() listAnswer) func() listAnswer {
	var a listAnswer
	done := make(chan error, 1)
	go func() {
		done <- fanout.Call(func() error {
			a = ask()
			return nil
		})
	}()
	return func() listAnswer {
		if err := <-done; err != nil {
			panic(err) // the caller's, and not the process's
		}
		return a
	}
}

// askList asks the list. It is exact whenever it is read: up to where it reached then it has every series, and
// complete compares that with the rows. Without an answer it is asked again.
func (r *Reader) askList(ctx context.Context, s *selection, ofList string) (a listAnswer) {
	var err error
	if a.all, err = r.lists.read(ctx, s.snap.Topic.Name); errors.Is(err, errNoList) {
		if a.found, err = r.findIn(ctx, ofList, s); err != nil {
			a.found = nil
		}
	}
	return a
}

// findAlone is what is found in the list alone; nil where that does not have all, and then it reads how far it reaches.
func (r *Reader) findAlone(ctx context.Context, s *selection, req *Request, list listAnswer, ofList string) (f *found, err error) {
	if !s.snap.simple() {
		return nil, r.list(ctx, s.snap)
	}
	if f = list.found; list.all != nil {
		f = list.all.find(s, req)
	}
	if f == nil {
		f, err = r.findIn(ctx, ofList, s)
	}
	if tables.Classify(err) == tables.Missing {
		return nil, r.list(ctx, s.snap)
	}
	return f, err
}

// listedAlone selects what listed does, of the list alone. Where points are read from
// before the range, a series' shards are those of its points from there on.
func (s *selection) listedAlone(req *Request) string {
	l, since := sql.SeriesListedAlone{List: s.list()}, s.from
	if !s.where.All() { // else they are most shards
		l.Places, since = maxPlaces, s.begins(req)
	}
	if since.Before(s.from) {
		l.SinceSQL = sqlFrom
	}
	l.Where = s.named() + " AND " + s.listedRange(since)
	return l.SQL()
}

// maxNamesOf is how many names come with what is found.
func maxNamesOf(req *Request) int {
	if req.Reduce != None {
		return fewSeries // they are for the keys alone
	}
	return maxNames
}

// findSQL reads what is found among the series that a statement selects. placed says that it has their
// places, and up to where they are listed.
func (s *selection) findSQL(req *Request, listed string, placed bool) string {
	keys := []string{"unit"}
	for _, label := range req.By {
		keys = append(keys, labelSQL(label, s.params))
	}
	return sql.SeriesFound{
		Listed: listed, Within: s.within(), Where: s.condition(), KeysSQL: strings.Join(keys, ", "),
		Labels: maxLabels, Names: maxNamesOf(req), Places: maxPlaces, Placed: placed,
	}.SQL()
}

func (r *Reader) findIn(ctx context.Context, statement string, s *selection) (*found, error) {
	f := &found{}
	return f, r.lines(ctx, statement, s.params, func(row []string) error {
		if err := f.read(row, s.snap.Topic.Name); err != nil {
			return fmt.Errorf("ClickHouse's answer is %.200q: %w", row, err)
		}
		return nil
	})
}

// read reads the row of findIn.
func (f *found) read(row []string, topic string) (err error) {
	for i, to := range []*int64{&f.all, &f.series, &f.groups} {
		if *to, err = strconv.ParseInt(row[i], 10, 64); err != nil {
			return err
		}
	}
	var places, reach [][]uint64
	for i, to := range []any{&f.points, &f.labels, &f.names, &places, &reach} {
		if err := json.Unmarshal([]byte(row[3+i]), to); err != nil {
			return err
		}
	}
	ref := func(at []uint64) schemas.ShardRef {
		return schemas.ShardRef{Topic: topic, Month: schemas.Month(at[0]), ID: schemas.Shard(at[1])}
	}
	if len(places) > 0 && len(places) < maxPlaces {
		f.places = map[schemas.ShardRef]bool{}
	}
	for _, at := range places {
		if f.places != nil {
			f.places[ref(at)] = true
		}
	}
	f.reach = map[schemas.ShardRef]uint64{}
	for _, at := range reach {
		f.reach[ref(at)] = max(f.reach[ref(at)], at[2])
	}
	return nil
}

// selected enters what was found, so that the points are read of fewer rows.
func (s *selection) selected(f *found, req *Request) {
	if f.series > int64(maxNamesOf(req)) {
		f.names = nil
	}
	if s.places = f.places; f.series == 0 || f.series > fewSeries {
		return
	}
	s.keys = make([]string, len(f.names))
	for i := range f.names {
		s.keys[i] = f.names[i][0]
	}
	s.params["keys"] = filter.ParamArray(s.keys, false)
}
