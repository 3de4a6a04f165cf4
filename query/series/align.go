package series

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Answer is the aligned points of a request.
type Answer struct {
	Topic  string `json:"topic"`
	Metric string `json:"metric,omitempty"`
	// Metrics, where several were asked for.
	Metrics []string  `json:"metrics,omitempty"`
	Align   Aligner   `json:"align"`
	Reduce  Aligner   `json:"reduce"`
	By      []string  `json:"by,omitempty"`
	Period  string    `json:"period,omitempty"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	// Series is how many series the filter selects, of which some may have no point.
	Series int64   `json:"series"`
	Groups []Group `json:"groups"`
}

// Group is a series, or a group of them, with its points by time.
type Group struct {
	// Metric, in an answer of several.
	Metric string            `json:"metric,omitempty"`
	Labels map[string]string `json:"labels"`
	// Unit of the values: 1 of a count, and "/s" is added to that of a rate.
	Unit   string  `json:"unit,omitempty"`
	Points []Point `json:"points"`
}

// Point is a value at the end of a window, or of a point at its time.
type Point struct {
	Time time.Time `json:"time"`
	// Value, unless the point is a summary or a distribution.
	Value        *Number       `json:"value,omitempty"`
	Distribution *Distribution `json:"summary,omitempty"`
}

// Distribution says what a summary is of.
type Distribution struct {
	Count uint64 `json:"count"`
	Mean  Number `json:"mean"`
	Sum   Number `json:"sum"`
	Min   Number `json:"min"`
	Max   Number `json:"max"`
	// M2 is the sum of squared deviations from the mean.
	M2 Number `json:"m2"`
}

// Number is a float64 which JSON has as a text when it is not finite, as a sum may be.
type Number float64

// MarshalJSON writes the number.
func (n Number) MarshalJSON() ([]byte, error) {
	if v := float64(n); !math.IsInf(v, 0) && !math.IsNaN(v) {
		return json.Marshal(v)
	}
	return json.Marshal(strconv.FormatFloat(float64(n), 'g', -1, 64))
}

// Align reads the points of a request.
func (r *Reader) Align(ctx context.Context, req Request) (*Answer, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	from, to := req.From, req.To
	if req.Align == None { // windows are (T - period, T]; points are taken from From on, up to before To
		req.From, req.To = from.Add(-1), to.Add(-1)
	}
	var a *Answer
	err := r.ask(ctx, req.Topic, func(snap *snapshot) error {
		s, err := selectSeries(snap, req.Metric, req.Where, req.From, req.To)
		if err != nil {
			return err
		}
		a, err = r.align(ctx, s, &req)
		return err
	})
	if err != nil {
		return nil, err
	}
	a.From, a.To = from, to
	return a, nil
}

func (r *Reader) align(ctx context.Context, s *selection, req *Request) (*Answer, error) {
	a := &Answer{Topic: req.Topic, Metric: req.Metric, Align: req.Align, Reduce: req.Reduce, By: req.By, From: req.From, To: req.To, Groups: []Group{}}
	if req.Align != None {
		a.Period = periodText(req.Period)
	}
	if !req.From.Before(req.To) {
		return a, nil // no window is final yet
	}
	f, err := r.find(ctx, s, req)
	if err != nil {
		return nil, err
	}
	if a.Series = f.series; f.series == 0 {
		return a, f.refuse(req, s)
	}
	if err := f.refuse(req, s); err != nil {
		return nil, err
	}
	if err := r.size(ctx, s, req, f); err != nil {
		return nil, err
	}
	keys, err := r.read(ctx, s, req, a)
	if err != nil && strings.Contains(err.Error(), textDistributions) {
		s.distributions, a.Groups = true, []Group{}
		keys, err = r.read(ctx, s, req, a)
	}
	if err != nil {
		return nil, err
	}
	if err := r.names(ctx, s, req, f.names, keys, a.Groups); err != nil {
		return nil, err
	}
	slices.SortStableFunc(a.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(labelsText(a.Labels), labelsText(b.Labels)), cmp.Compare(a.Unit, b.Unit))
	})
	return a, nil
}

// names gives groups their labels: series by what was found, and by the list after their points where that
// has not all, as of a series that came in between; others by the key itself.
func (r *Reader) names(ctx context.Context, s *selection, req *Request, found [][]string, keys []string, groups []Group) error {
	if req.Reduce != None {
		for i, key := range keys {
			var parts []string
			if err := json.Unmarshal([]byte(key), &parts); err != nil || len(parts) != len(req.By)+1 {
				return fmt.Errorf("ClickHouse's answer is %q: %w", key, err)
			}
			groups[i].Labels, groups[i].Unit = map[string]string{}, s.unitOf(parts[0], req)
			for k, label := range req.By {
				groups[i].Labels[label] = parts[k+1]
			}
		}
		return nil
	}
	at := make(map[string]int, len(keys))
	for i, key := range keys {
		at[key] = i
	}
	label := func(row []string) error {
		i, ok := at[row[0]]
		if !ok {
			return nil // it has no point that counts
		}
		delete(at, row[0])
		groups[i].Labels, groups[i].Unit = map[string]string{}, s.unitOf(row[3], req)
		if err := json.Unmarshal([]byte(row[4]), &groups[i].Labels); err != nil {
			return fmt.Errorf("ClickHouse's answer is %q: %w", row, err)
		}
		for column, value := range map[string]string{schemas.ColService: row[1], schemas.ColUserID: row[2]} {
			if value != "" {
				groups[i].Labels[column] = value
			}
		}
		return nil
	}
	var err error
	for _, row := range found {
		err = errors.Join(err, label(row))
	}
	if err == nil && len(at) > 0 {
		err = r.lines(ctx, sql.SeriesNames{Listed: s.listed(), Where: s.condition()}.SQL(), s.params, label)
	}
	if err == nil && len(at) > 0 {
		return once.ErrMoved // rows went between the two statements
	}
	return err
}

// unitOf is the unit of the values that are made of values with a unit.
func (s *selection) unitOf(unit string, req *Request) string {
	if s.distributions && (req.Align == Delta || req.Align == Rate) {
		unit = "1" // it is how many values they have
	}
	switch {
	case req.Align == Count || req.Reduce == Count:
		return "1"
	case req.Align == Rate:
		return unit + "/s"
	}
	return unit
}

func labelsText(labels map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(k + "\x00" + labels[k] + "\x00")
	}
	return b.String()
}

// periodText writes a period as people do: 1m, 1h, 90m.
func periodText(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"0s", "0m"} {
		if len(text) > len(zero)+1 && strings.HasSuffix(text, zero) && !strings.ContainsAny(text[len(text)-len(zero)-1:len(text)-len(zero)], "0123456789") {
			text = strings.TrimSuffix(text, zero)
		}
	}
	return text
}
