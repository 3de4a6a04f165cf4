package remotewrite

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Write is what one request holds.
type Write struct {
	// Series are those of the request, in its order.
	Series []Series
	// Samples, Histograms and Exemplars count all that the request has.
	Samples, Histograms, Exemplars int

	points []sample
	form   string
	read   func(said []byte) (labels []label, unit, points string, err error)
	space  int // bytes that the series and their samples may still have
}

// Series is one of a request.
type Series struct {
	// Said is all that the request says of it but its samples: equal bytes are equal series, of one version.
	Said       []byte
	Histograms int
	long       bool // it says more than an event may have, and Said is empty
	from, to   int  // its samples
}

// Options bound a request.
type Options struct {
	// MaxBytes bounds the snappy block once decompressed, and what its events have together.
	MaxBytes int
	// MaxSamples bounds the samples, and the series.
	MaxSamples int
}

// label is a pair of a series.
type label struct{ name, value string }

// sample is one of either version; start is 0 for none.
type sample struct {
	value     float64
	ms, start int64
}

const nameLabel = "__name__"

// maxSaidBytes bounds what a series says: an event has no room for more.
const maxSaidBytes = 2 * schemas.MaxEventBytes

// Event is what the samples of a series have in common: an event without time, value and start. word is the kind of points
// that stands for a value which is not a number; else it is empty. The error is ErrSeries, or why the request is none.
func (w *Write) Event(s *Series, word string) (e schemas.Event, err error) {
	if s.long || len(s.Said) > maxSaidBytes {
		return e, tooLong()
	}
	labels, unit, points, err := w.read(s.Said)
	if err != nil {
		return e, fmt.Errorf("%w: %w", ErrWrite, err)
	}
	return eventOf(labels, unit, cmp.Or(word, points))
}

func tooLong() error {
	return fmt.Errorf("%w: its labels have more than %d bytes", ErrSeries, schemas.MaxEventBytes)
}

// eventOf is the event of a series' labels.
func eventOf(labels []label, unit, points string) (e schemas.Event, err error) {
	size := 0
	for _, l := range labels {
		if size += len(l.name) + len(l.value); size > schemas.MaxEventBytes {
			return e, tooLong()
		}
	}
	seen := make(map[string]bool, len(labels))
	e.Attrs = make([]schemas.Attr, 0, len(labels)+2)
	for _, l := range labels {
		switch {
		case l.name == "":
			return e, fmt.Errorf("%w: a label has no name", ErrSeries)
		case seen[l.name]:
			return e, fmt.Errorf("%w: the label %.64q is there twice", ErrSeries, l.name)
		case !utf8.ValidString(l.name) || !utf8.ValidString(l.value):
			return e, fmt.Errorf("%w: the label %.64q is not UTF-8", ErrSeries, l.name)
		}
		seen[l.name] = true
		switch {
		case l.value == "": // a label without a value is as none
		case l.name == nameLabel:
			e.Type = l.value
		case l.name == schemas.ColService:
			e.Service = l.value
		case l.name == schemas.ColUserID:
			e.UserID = l.value
		default:
			e.Attrs = append(e.Attrs, schemas.String(kinds.LabelKey(l.name), l.value))
		}
	}
	if e.Type == "" {
		return e, fmt.Errorf("%w: it has no label %s", ErrSeries, nameLabel)
	}
	if unit != "" {
		e.Attrs = append(e.Attrs, schemas.String(kinds.ColUnit, unit))
	}
	if points != "" {
		e.Attrs = append(e.Attrs, schemas.String(kinds.ColPoints, points))
	}
	return e, nil
}

// point is a sample as the columns have it, with the word for what is not a number.
func (p sample) point() (pt pool.Point, word string, err error) {
	pt.Value, word = kinds.Number(p.value)
	if pt.Time, err = schemas.UnixNs(time.UnixMilli(p.ms)); err != nil {
		return pt, word, err
	}
	if p.start > 0 && p.start <= p.ms {
		pt.Start = time.UnixMilli(p.start).UnixNano()
	}
	return pt, word, nil
}

// What a series and a sample hold beside what the series says.
const (
	seriesBytes = 64
	sampleBytes = 96
)

// begin adds a series. The error is ErrTooLarge.
func (w *Write) begin(o *Options, v []byte) error {
	if len(v) > maxSeriesBytes {
		return fmt.Errorf("%w: a series has %d bytes, the limit is %d; send fewer of its samples at once", ErrTooLarge, len(v), maxSeriesBytes)
	}
	if len(w.Series) >= o.MaxSamples {
		return fmt.Errorf("%w: more than %d series; send fewer at once", ErrTooLarge, o.MaxSamples)
	}
	w.Series = append(w.Series, Series{from: len(w.points), to: len(w.points)})
	return w.take(o, seriesBytes)
}

// sample adds one to the last series, and histogram a native histogram, which is not kept.
func (w *Write) sample(o *Options, p sample) error {
	if w.Samples++; w.Samples > o.MaxSamples {
		return fmt.Errorf("%w: more than %d samples; send fewer at once", ErrTooLarge, o.MaxSamples)
	}
	w.points = append(w.points, p)
	w.Series[len(w.Series)-1].to++
	return w.take(o, sampleBytes)
}

func (w *Write) histogram() {
	w.Histograms++
	w.Series[len(w.Series)-1].Histograms++
}

// take takes of the bytes that a request may have.
func (w *Write) take(o *Options, n int) error {
	if w.space -= n; w.space < 0 {
		return fmt.Errorf("%w: its samples have more than %d bytes; send fewer samples at once", ErrTooLarge, o.MaxBytes)
	}
	return nil
}

// cumulative reports whether a series of a histogram or summary counts up, by its name.
func cumulative(name string) bool {
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}
